"""Warp-instructions a second on one core, family by family: a loop of the family's instructions, nothing else.

Each step uses what the last one made, so that nothing can be left out. Where the target's figure does not apply, the
row of `FAMILIES` says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

import triptych as tt
from harness import BenchmarkError, Contender, Figure, Peer, at_least, spread, take_turns
from launches import TARGET, warp_instructions

THREADS = 256
COPIES = 8
"""How often the family's lines stand in the loop."""
RATE_TARGET = 50e6
ATOMICS_TARGET = 20e6
BYTES = 1 << 16
"""Of global memory: 64 for each thread, and more."""
ATOMICS = "atomic operations have a target of their own"
PLACES = "a request to 32 places, which a processor reaches one by one"


@dataclass(frozen=True, slots=True)
class Family:
    """PTX lines over registers: %r0 … %r7 (32 bits), %q0 … %q3 (64), %f0 … %f7, %d0 … %d3, %h0 … %h3 (f16x2), %p0,
    %a (the thread's place in global memory), %b (one 64 bytes from the next), %c (that of all threads), %s (in shared
    memory), %t (one bank's), %z (all threads'), %l (local memory), %o (at an offset of the thread's own)."""

    lines: str
    slow: str = ""
    """Why the family need not reach the target; empty: it must."""


FAMILIES: Mapping[str, Family] = {
    "integer add, multiply": Family("mad.lo.s32 %r0, %r1, %r2, %r0; add.s32 %r1, %r0, %r3; sub.s32 %r2, %r1, %r0;"),
    "64-bit integer": Family("mad.lo.s64 %q0, %q1, %q2, %q0; add.s64 %q1, %q0, %q3; mul.wide.s32 %q2, %r0, %r1;"),
    "carry chain": Family("add.cc.u32 %r0, %r0, %r1; addc.cc.u32 %r1, %r1, %r2; addc.u32 %r2, %r2, %r3;"),
    "integer division": Family("or.b32 %r2, %r2, 1; div.s32 %r0, %r1, %r2; rem.u32 %r1, %r3, %r2;", "division"),
    "logic and shift": Family(
        "lop3.b32 %r0, %r1, %r2, %r3, 0x96; shl.b32 %r1, %r0, 3; shf.l.wrap.b32 %r2, %r0, %r1, 7;"
    ),
    "bit fields": Family("bfe.u32 %r0, %r1, 3, 9; bfi.b32 %r1, %r0, %r2, 5, 7; prmt.b32 %r2, %r0, %r1, 0x5410;"),
    "bit counts": Family("popc.b32 %r0, %r1; clz.b32 %r1, %r2; brev.b32 %r2, %r0;"),
    "f32": Family("fma.rn.f32 %f0, %f1, %f2, %f0; add.f32 %f1, %f0, %f3; mul.f32 %f2, %f1, %f4;"),
    "f32, flushing": Family("fma.rn.ftz.f32 %f0, %f1, %f2, %f0; add.ftz.f32 %f1, %f0, %f3; mul.ftz.f32 %f2, %f1, %f4;"),
    "f32, directed": Family(
        "add.rz.f32 %f0, %f1, %f0; mul.rp.f32 %f1, %f0, %f3; fma.rm.f32 %f2, %f1, %f4, %f2;",
        "the processor's rounding is switched and switched back",
    ),
    "f32 division, root": Family("div.rn.f32 %f0, %f1, %f2; sqrt.rn.f32 %f1, %f0; rcp.rn.f32 %f2, %f1;", "division"),
    "f32 approximate": Family("ex2.approx.f32 %f0, %f1; lg2.approx.f32 %f1, %f0; rsqrt.approx.f32 %f2, %f1;"),
    "f32 sine, cosine": Family("sin.approx.f32 %f0, %f1; cos.approx.f32 %f1, %f0; tanh.approx.f32 %f2, %f1;"),
    "f64": Family("fma.rn.f64 %d0, %d1, %d2, %d0; add.f64 %d1, %d0, %d3; mul.f64 %d2, %d1, %d3;"),
    "f64 division": Family("div.rn.f64 %d0, %d1, %d2; sqrt.rn.f64 %d1, %d0;", "f64 division and the like"),
    "f16x2": Family("fma.rn.f16x2 %h0, %h1, %h2, %h0; add.f16x2 %h1, %h0, %h3; mul.f16x2 %h2, %h1, %h3;"),
    "bf16x2": Family("fma.rn.bf16x2 %h0, %h1, %h2, %h0; max.bf16x2 %h1, %h0, %h3; add.rn.bf16x2 %h2, %h1, %h3;"),
    "conversion": Family("cvt.rn.f32.s32 %f0, %r0; cvt.rzi.s32.f32 %r0, %f1; cvt.rn.f16x2.f32 %h0, %f0, %f1;"),
    "compare, select": Family("setp.lt.s32 %p0, %r0, %r1; selp.b32 %r0, %r1, %r2, %p0; min.s32 %r1, %r0, %r3;"),
    "shared memory": Family("st.shared.u32 [%s], %r0; ld.shared.u32 %r0, [%s]; ld.shared.u32 %r1, [%s+4096];"),
    "shared memory, conflicts": Family("ld.shared.u32 %r0, [%t]; ld.shared.u32 %r1, [%t+64];", PLACES),
    "global memory": Family("ld.global.u32 %r0, [%a]; st.global.u32 [%a], %r0; ld.global.u32 %r1, [%c];"),
    "global memory, 4 elements": Family("ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%b];", PLACES),
    "global memory, strided": Family("ld.global.u32 %r0, [%b+4]; ld.global.u32 %r1, [%b+8];", PLACES),
    "local memory": Family("st.local.u32 [%l], %r0; ld.local.u32 %r0, [%l];"),
    "local memory, 4 elements": Family(
        "st.local.v4.u32 [%l], {%r0, %r1, %r2, %r3}; ld.local.v4.u32 {%r1, %r0, %r3, %r2}, [%l];"
    ),
    "local memory, own offsets": Family("st.local.u32 [%o], %r0; ld.local.u32 %r1, [%o];", PLACES),
    "shuffle": Family("shfl.sync.bfly.b32 %r0, %r0, 16, 31, -1; shfl.sync.down.b32 %r1, %r0, 1, 31, -1;"),
    "vote, match": Family("vote.sync.ballot.b32 %r0, %p0, -1; match.any.sync.b32 %r1, %r2, -1;"),
    "redux": Family("redux.sync.add.s32 %r0, %r0, -1; redux.sync.max.s32 %r1, %r0, -1;"),
    "barrier": Family("bar.sync 0; add.s32 %r0, %r0, 1;", "a barrier is a yield of the warp"),
    "atomics on shared memory, own places": Family("atom.shared.add.u32 %r0, [%s], %r1;", ATOMICS),
    "atomics on shared memory, one place": Family("red.shared.add.u32 [%z], 1;", ATOMICS),
    "atomics on global memory, one place": Family("red.global.add.u32 [%c], 1;", ATOMICS),
}  # fmt: skip

_KERNEL = """.version 8.4
.target {target}
.address_size 64
.visible .entry family(.param .u64 memory, .param .u32 steps) {{
.reg .pred %p0, %more; .reg .b32 %r<8>, %h<4>, %s, %t, %z, %k, %tid, %n; .reg .b64 %q<4>, %a, %b, %c, %l, %o;
.reg .f32 %f<8>; .reg .f64 %d<4>;
.shared .align 16 .b8 shared[16384]; .local .align 16 .b8 own[16];
mov.u32 %tid, %tid.x; ld.param.u64 %c, [memory]; ld.param.u32 %n, [steps];
mul.wide.u32 %q0, %tid, 4; add.s64 %a, %c, %q0; add.s64 %a, %a, 128; mul.wide.u32 %q1, %tid, 64; add.s64 %b, %c, %q1;
mov.u32 %z, shared; mad.lo.u32 %s, %tid, 4, %z; and.b32 %t, %tid, 31; mad.lo.u32 %t, %t, 128, %z; mov.u64 %l, own;
and.b32 %k, %tid, 3; mad.wide.u32 %o, %k, 4, %l;
{integers}
mov.b64 %q2, 3; mov.b64 %q3, 5; setp.lt.u32 %p0, %tid, 300;
mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f3F400000; mov.f32 %f2, 0f3F200000; mov.f32 %f3, 0f3E800000;
mov.f32 %f4, 0f3F000000; mov.f64 %d0, 0d3FF0000000000000; mov.f64 %d1, 0d3FE8000000000000;
mov.f64 %d2, 0d3FE4000000000000; mov.f64 %d3, 0d3FD0000000000000;
mov.b32 %h0, 0x3C003C00; mov.b32 %h1, 0x38003800; mov.b32 %h2, 0x34003400; mov.b32 %h3, 0x30003000;
loop:
{lines}
sub.u32 %n, %n, 1; setp.ne.u32 %more, %n, 0;
@%more bra loop;
{uses}
st.global.u32 [%a], %r0; ret; }}
"""


def _ptx(family: Family) -> str:
    integers = "\n".join(f"add.u32 %r{i}, %tid, {i + 1};" for i in range(8))
    floats = "\n".join(f"mov.b32 %r1, %f{i}; xor.b32 %r0, %r0, %r1;" for i in range(3))
    doubles = "\n".join(f"mov.b64 {{%r1, %r2}}, %d{i}; xor.b32 %r0, %r0, %r2;" for i in range(3))
    words = "\n".join(f"xor.b32 %r0, %r0, %{name};" for name in ("r1", "r2", "r3", "h0", "h1", "h2"))
    longs = "\n".join(f"cvt.u32.u64 %r1, %q{i}; xor.b32 %r0, %r0, %r1;" for i in range(3))
    return _KERNEL.format(
        target=TARGET, integers=integers, lines="\n".join([family.lines] * COPIES),
        uses="\n".join((words, floats, doubles, longs)),
    )  # fmt: skip


def measure(quick: bool) -> Iterator[Figure]:
    """Best of the rounds, one worker, code as it is once hot, all families taking turns."""
    blocks, steps, rounds = (1, 3, 1) if quick else (16, 200, 5)
    memory = np.zeros(BYTES // 4, np.uint32)
    launches = {name: tt.ptx.compile(_ptx(family))["family"][blocks, THREADS] for name, family in FAMILIES.items()}
    executed = {name: warp_instructions(launch, memory, steps) for name, launch in launches.items()}
    with tt.scope(workers=1, optimise="always"):
        seconds = take_turns(
            {name: Contender(lambda launch=launch: launch(memory, steps)) for name, launch in launches.items()}, rounds
        )
    for name, family in FAMILIES.items():
        least = COPIES * family.lines.count(";") * steps * blocks * THREADS / 32
        if executed[name] < least:
            raise BenchmarkError(f"{name}: {executed[name]} warp-instructions, where {least} stand in the loop")
        best = min(seconds[name])
        if name.startswith("atomics"):
            lanes = COPIES * steps * blocks * THREADS
            yield Figure(
                name, lanes / best, "lane-operations/s", target=at_least(ATOMICS_TARGET), samples=seconds[name],
                details=spread(seconds[name]),
            )  # fmt: skip
            continue
        yield Figure(
            f"{name}{f' ({family.slow})' if family.slow else ''}", executed[name] / best, "warp-instructions/s",
            Peer("f32", executed["f32"] / min(seconds["f32"])),
            None if family.slow else at_least(RATE_TARGET), samples=seconds[name], details=spread(seconds[name]),
        )  # fmt: skip
