"""Random kernels of structured control flow: branches, loops, switches and early returns around arithmetic."""

from __future__ import annotations

import random

from both import HEADER

REGISTERS = 8
WORDS = 64
"""Elements of the array that the kernels read, and of their shared memory."""
_OPERATIONS = (
    "add.u32 {d}, {a}, {b};", "sub.u32 {d}, {a}, {b};", "mul.lo.u32 {d}, {a}, {b};", "xor.b32 {d}, {a}, {b};",
    "and.b32 {d}, {a}, 0x{k:x};", "shl.b32 {d}, {a}, {s};", "shr.s32 {d}, {a}, {s};", "min.s32 {d}, {a}, {b};",
    "mad.lo.u32 {d}, {a}, {k}, {b};", "mov.u32 {d}, {k};", "mov.u32 {d}, {special};", "rem.u32 {d}, {a}, {b};",
    "cvt.u64.u32 %d2, {a}; mul.lo.u64 %d2, %d2, {k}; cvt.u32.u64 {d}, %d2;",
    "cvt.rn.f32.s32 %f0, {a}; fma.rn.f32 %f0, %f0, 0f3F400000, 0f3F000000; cvt.rzi.s32.f32 {d}, %f0;",
    "and.b32 %r15, {a}, 63; mad.wide.u32 %d2, %r15, 4, %d0; ld.global.u32 {d}, [%d2];",
    "and.b32 %r15, {a}, 60; mov.u32 %r14, tile; mad.lo.u32 %r14, %r15, 4, %r14; ld.shared.u32 {d}, [%r14];",
    "mov.u32 %r14, tile; mad.lo.u32 %r14, %r13, 4, %r14; st.shared.u32 [%r14], {a}; ld.shared.u32 {d}, [%r14];",
    "st.global.u32 [%d1+{place}], {a};", "setp.lt.u32 %p0, {a}, {b}; selp.b32 {d}, {a}, {k}, %p0;",
    "setp.gt.s32 %p0, {a}, {b}; @%p0 add.u32 {d}, {d}, {k};", "st.local.u32 [own+{place}], {a};",
    "ld.local.u32 {d}, [own+{place}]; and.b32 {d}, {d}, 0;",
)  # fmt: skip
_SPECIALS = ("%tid.x", "%laneid", "%ctaid.x", "%ntid.x", "%tid.y", "%warpid")


class RandomKernel:
    """Writes one kernel `k(in, out)`; each thread leaves its registers in a row of `out`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.labels = 0
        self.lines: list[str] = []
        self.counters: list[str] = []
        self.jumps = self.random.random() < 0.5
        """Lanes may wait at the end of the kernel, so that those in the middle are never all."""
        self.text = self._write()

    def _register(self) -> str:
        return f"%r{self.random.randrange(REGISTERS)}"

    def _label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def _operation(self) -> None:
        source = self.random
        self.lines.append(
            source.choice(_OPERATIONS).format(
                d=self._register(), a=self._register(), b=self._register(), k=source.randrange(1, 100),
                s=source.randrange(1, 9), special=source.choice(_SPECIALS), place=4 * source.randrange(REGISTERS),
            )
        )  # fmt: skip

    def _condition(self) -> str:
        """Sets %p1; returns a guard."""
        source = self.random
        what = source.choice((self._register(), self._register(), "%r13", "%r12"))
        self.lines.append(f"and.b32 %r15, {what}, {source.choice((1, 3, 4, 7, 16))}; setp.eq.u32 %p1, %r15, 0;")
        return source.choice(("@%p1", "@!%p1"))

    def _statement(self, depth: int, loop: tuple[str, str] | None) -> None:
        kind = self.random.random()
        if depth == 0 or kind < 0.55:
            self._operation()
        elif kind < 0.75:
            self._branch(depth, loop)
        elif kind < 0.87 and len(self.counters) < 3:
            self._loop(depth)
        elif kind < 0.92:
            self._switch(depth, loop)
        elif kind < 0.96 and loop is not None:
            self.lines.append(f"{self._condition()} bra {self.random.choice(loop)};")
        else:
            leave = self.random.choice(("ret", "exit", "bra END" if self.jumps else "ret"))
            self.lines.append(f"{self._condition()} {leave};")

    def _statements(self, depth: int, loop: tuple[str, str] | None) -> None:
        for _ in range(self.random.randrange(1, 5)):
            self._statement(depth, loop)

    def _branch(self, depth: int, loop: tuple[str, str] | None) -> None:
        other, join = self._label(), self._label()
        self.lines.append(f"{self._condition()} bra {other};")
        self._statements(depth - 1, loop)
        if self.random.random() < 0.6:
            self.lines.append(f"bra{self.random.choice(('', '.uni'))} {join};")
            self.lines.append(f"{other}:")
            self._statements(depth - 1, loop)
        else:
            self.lines.append(f"{other}:")
        self.lines.append(f"{join}:")

    def _loop(self, depth: int) -> None:
        head, latch, end = self._label(), self._label(), self._label()
        counter, limit = f"%c{2 * len(self.counters)}", f"%c{2 * len(self.counters) + 1}"
        self.counters.append(counter)
        bound = self.random.choice((self._register(), "%r13", "5"))
        self.lines.append(f"mov.u32 {counter}, 0; and.b32 {limit}, {bound}, 7;")
        self.lines.append(f"{head}: setp.ge.u32 %p2, {counter}, {limit}; @%p2 bra {end};")
        self._statements(depth - 1, (latch, end))
        self.lines.append(f"{latch}: add.u32 {counter}, {counter}, 1; bra {head};")
        self.lines.append(f"{end}:")
        self.counters.pop()

    def _switch(self, depth: int, loop: tuple[str, str] | None) -> None:
        cases = [self._label() for _ in range(self.random.randrange(2, 5))]
        table, join = self._label(), self._label()
        listed = [self.random.choice(cases) for _ in range(2)]
        self.lines.append(f"and.b32 %r15, {self._register()}, 7; brx.idx %r15, {table};")
        self.lines.append(f"{table}: .branchtargets {', '.join([*listed, *cases])};")
        for case in cases:
            self.lines.append(f"{case}:")
            self._operation()
            self._statement(depth - 1, loop)
            if self.random.random() < 0.8:
                self.lines.append(f"bra {join};")
        self.lines.append(f"{join}:")

    def _top(self) -> None:
        """Between the parts all living lanes are together again: a barrier and a ballot of all would notice if not."""
        for part in range(4):
            self._statements(3, None)
            if part % 2:
                self.lines.append("bar.sync 0;")
            elif not self.jumps:
                self.lines.append(f"and.b32 %r15, {self._register()}, 1; setp.eq.u32 %p1, %r15, 0;")
                self.lines.append(f"vote.sync.ballot.b32 {self._register()}, %p1, 0xFFFFFFFF;")

    def _write(self) -> str:
        for register in range(REGISTERS):
            self.lines.append(f"ld.global.u32 %r{register}, [%d3+{4 * register}];")
        self._top()
        stores = "\n".join(f"st.global.u32 [%d1+{4 * (REGISTERS + i)}], %r{i};" for i in range(REGISTERS))
        body = "\n".join(self.lines)
        return f"""{HEADER}.shared .align 16 .b8 tile[{4 * 1024}];
.entry k(.param .u64 in, .param .u64 out)
{{
.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b32 %c<8>; .reg .b64 %d<8>; .reg .f32 %f<2>;
.local .align 4 .b8 own[{4 * REGISTERS}];
ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out];
mov.u32 %r14, %tid.x; mov.u32 %r12, %ntid.x; mov.u32 %r13, %tid.y; mad.lo.u32 %r13, %r13, %r12, %r14;
mov.u32 %r14, %ntid.y; mul.lo.u32 %r12, %r12, %r14; mov.u32 %r14, %ctaid.x; mad.lo.u32 %r14, %r14, %r12, %r13;
mad.wide.u32 %d1, %r14, {8 * REGISTERS}, %d1; and.b32 %r15, %r14, 31; mad.wide.u32 %d3, %r15, 4, %d0;
mov.u32 %r15, tile; mad.lo.u32 %r15, %r13, 4, %r15; st.shared.u32 [%r15], %r13; bar.sync 0;
{body}
END:
{stores}
ret;
}}
"""
