"""What compilers seldom write: switches by `brx.idx`, guards on all, packed moves, odd literals and addresses."""

from __future__ import annotations

import numpy as np
import pytest
from both import HEADER, run_both

from triptych.core.errors import BudgetExceeded, DeadlockError, KernelFault, MemoryFault, TriptychError
from triptych.core.settings import scope

BLOCK = 64


def kernel(body: str, *, parameters: str = ".param .u64 in, .param .u64 out", module: str = "") -> str:
    """A kernel with %r0 = the thread's number, %d0 and %d1 = the addresses of its elements of 4 and 8 bytes."""
    return f"""{HEADER}{module}
.entry kernel({parameters})
{{
.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %d<16>; .reg .f64 %e<8>;
mov.u32 %r0, %tid.x; ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out];
mad.wide.u32 %d0, %r0, 4, %d0; mad.wide.u32 %d1, %r0, 8, %d1;
ld.global.u32 %r1, [%d0];
{body}
ret;
}}
"""


def run(body: str, *, block: int = BLOCK, module: str = "", shared_bytes: int = 0) -> list[int]:
    """What the kernel's threads leave in `out`; it reads random integers below 10."""
    values = np.random.default_rng(len(body)).integers(0, 10, block, np.uint32)
    text = kernel(body, module=module)
    out = np.zeros(block, np.uint64)
    outcome = run_both(text, "kernel", 1, block, values, out, shared_bytes=shared_bytes)
    return [int(x) for x in outcome.arrays[1]]


def test_a_switch_by_index_with_indices_beyond_the_list() -> None:
    run("""
        mov.u32 %r2, 0;
        brx.idx %r1, list;
        list: .branchtargets A, B, C, A, D;
        A: add.u32 %r2, %r2, 1; bra join;
        B: add.u32 %r2, %r2, 20; bra C;
        C: mul.lo.u32 %r2, %r2, 3; setp.gt.u32 %p1, %r2, 50; @%p1 bra D; bra join;
        D: add.u32 %r2, %r2, 500;
        join: st.global.u32 [%d1], %r2;
        """)


def test_a_switch_by_the_thread_and_by_a_number_that_all_share() -> None:
    run("""
        and.b32 %r3, %r1, 0; mov.u32 %r2, 5; mov.u32 %r4, %tid.x;
        brx.idx %r4, list; back: brx.idx %r3, other;
        list: .branchtargets A, A, B, C;
        other: .branchtargets done, A;
        A: add.u32 %r2, %r2, 10; bra back;
        B: mul.lo.u32 %r2, %r2, 7; bra back;
        C: sub.u32 %r2, %r2, %r0; bra back;
        done: st.global.u32 [%d1], %r2;
        """)


def test_guards_on_arithmetic_loads_stores_and_atomics() -> None:
    run("""
        setp.gt.u32 %p1|%p2, %r1, 4; setp.eq.and.u32 %p3, %r1, 7, %p1;
        mov.u32 %r2, 5; @%p1 mov.u32 %r2, 6; @!%p1 add.u32 %r2, %r2, %r1;
        @%p3 ld.global.u32 %r3, [%d0]; @%p2 st.global.u32 [%d1], %r2; @!%p3 atom.global.add.u32 %r4, [%d1+4], %r2;
        @%p3 bra on; xor.b32 %r2, %r2, %r3; @%p1 ret;
        on: add.u32 %r2, %r2, %r4; st.global.u32 [%d1], %r2;
        """)


def test_floating_point_operations_are_counted_where_the_guard_holds() -> None:
    text = kernel("setp.lt.u32 %p1, %r0, 5; mov.f32 %f1, 0f3F800000; @%p1 fma.rn.f32 %f1, %f1, %f1, %f1;")
    outcome = run_both(text, "kernel", 1, 32, np.zeros(32, np.uint32), np.zeros(32, np.uint64))
    assert outcome.counters["flops.f32"] == 10


def test_packing_and_unpacking() -> None:
    run("""
        mov.b64 %d2, {%r1, %r0}; mov.b64 {%r2, %r3}, %d2; sub.u32 %r2, %r2, %r3;
        mov.b32 {%h1, %h2}, %r2; mov.b32 %r4, {%h2, %h1}; mov.b64 {%h3, _, %h4, %h5}, %d2;
        mov.b64 %d3, {%h5, %h4, %h3, %h1}; xor.b64 %d3, %d3, %d2; mov.b64 %d4, {%r4, 7}; add.u64 %d3, %d3, %d4;
        st.global.u64 [%d1], %d3;
        """)


def test_literals() -> None:
    run("""
        add.s32 %r2, %r1, -3; mul.lo.u32 %r2, %r2, 0x1F; and.b32 %r2, %r2, 0xFFFFFFF0; cvt.rn.f32.s32 %f1, %r2;
        fma.rn.f32 %f1, %f1, 0f3F000000, 0fBF800000; mov.f32 %f2, 1.5; mul.f32 %f1, %f1, %f2;
        cvt.f64.f32 %e1, %f1; add.f64 %e1, %e1, 0d3FF8000000000000; shl.b64 %d2, 1, %r1; cvt.rn.f64.u64 %e2, %d2;
        add.f64 %e1, %e1, %e2; mov.u16 %h1, 65535; cvt.u32.u16 %r3, %h1; cvt.rn.f64.u32 %e3, %r3;
        sub.f64 %e1, %e1, %e3; st.global.f64 [%d1], %e1;
        """)


def test_special_registers_with_wider_and_narrower_uses() -> None:
    run("""
        mov.u32 %r2, %laneid; mov.u32 %r3, %warpid; mov.u32 %r4, %nwarpid; mov.u32 %r5, %lanemask_ge;
        mov.u32 %r6, %lanemask_gt; mov.u32 %r7, %lanemask_le; mov.u32 %r8, %lanemask_eq; cvt.u64.u32 %d2, %tid.x;
        mad.lo.u32 %r2, %r3, %r4, %r2; xor.b32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7; sub.u32 %r5, %r5, %r8;
        xor.b32 %r2, %r2, %r5; cvt.u64.u32 %d3, %r2; mad.lo.u64 %d2, %d2, WARP_SZ, %d3; st.global.u64 [%d1], %d2;
        """)


def test_registers_that_were_never_written_read_as_zero() -> None:
    outs = run("""
        setp.gt.u32 %p1, %r1, 4; @%p1 bra skip; mov.u32 %r9, 3;
        skip: add.u32 %r9, %r9, %r10; @%p5 add.u32 %r9, %r9, 100; st.global.u32 [%d1], %r9;
        """)
    assert set(outs) == {0, 3}


def test_module_variables_and_pointers_among_them() -> None:
    module = """
        .global .align 4 .u32 table[4] = {10, 20, 30, 40};
        .const .align 8 .u64 places[2] = {generic(table), generic(table)+8};
        .global .align 2 .b8 bytes[6] = {1, 2, 255};
        """
    run(
        """
        and.b32 %r2, %r1, 1; mul.wide.u32 %d2, %r2, 8; mov.u64 %d3, places; add.u64 %d3, %d3, %d2;
        ld.const.u64 %d4, [%d3]; ld.u32 %r3, [%d4+4]; ld.global.u32 %r4, [table+12]; add.u32 %r3, %r3, %r4;
        ld.const.u64 %d5, [places+8]; ld.global.v2.u32 {%r5, %r6}, [%d5]; sub.u32 %r3, %r3, %r6;
        ld.global.s8 %r7, [bytes+2]; ld.global.u8 %r8, [bytes+2]; mad.lo.u32 %r3, %r7, %r8, %r3;
        st.global.u32 [%d1], %r3;
        """,
        module=module,
    )


def test_generic_addresses_that_mix_spaces_in_one_access() -> None:
    run(
        """
        .shared .align 8 .b8 tile[256]; .local .align 8 .b8 mine[8];
        mov.u64 %d2, tile; mad.wide.u32 %d2, %r0, 4, %d2; st.shared.u32 [%d2], %r0; cvta.shared.u64 %d3, %d2;
        mov.u64 %d4, mine; st.local.u32 [%d4], %r1; cvta.local.u64 %d4, %d4; cvta.global.u64 %d5, %d0;
        setp.lt.u32 %p1, %r1, 3; setp.gt.u32 %p2, %r1, 6;
        selp.b64 %d6, %d3, %d5, %p1; selp.b64 %d6, %d4, %d6, %p2;
        ld.u32 %r2, [%d6]; add.u32 %r2, %r2, 1000; st.u32 [%d6], %r2; mov.u32 %r3, 0; @!%p2 atom.add.u32 %r3, [%d6], 5;
        ld.u32 %r4, [%d6]; cvta.to.shared.u64 %d7, %d3; ld.shared.u32 %r5, [%d7];
        mad.lo.u32 %r4, %r4, 7, %r5; st.global.u32 [%d1], %r4; st.global.u32 [%d1+4], %r3;
        """
    )


def test_shared_addresses_of_32_bits_wrap() -> None:
    run(
        """
        mov.u32 %r2, pool; mad.lo.u32 %r2, %r0, 4, %r2; st.shared.u32 [%r2], %r1; bar.sync 0;
        sub.u32 %r3, %r2, 1024; ld.shared.u32 %r4, [%r3+1024]; xor.b32 %r5, %r0, 9; mad.lo.u32 %r5, %r5, 4, 0;
        mov.u32 %r6, pool; add.u32 %r5, %r5, %r6; ld.shared.u32 %r7, [%r5]; mad.lo.u32 %r4, %r4, 100, %r7;
        st.global.u32 [%d1], %r4;
        """,
        module=".extern .shared .align 16 .b8 pool[];",
        shared_bytes=4 * BLOCK,
    )


def test_parameters_at_addresses_that_are_known_only_when_it_runs() -> None:
    text = kernel(
        """
        and.b32 %r2, %r1, 7; mul.wide.u32 %d2, %r2, 4; mov.u64 %d3, values; add.u64 %d3, %d3, %d2;
        ld.param.u32 %r3, [%d3]; ld.param.u32 %r4, [steps]; mul.wide.u32 %d4, %r4, 4; mov.u64 %d5, values;
        add.u64 %d5, %d5, %d4; ld.param.u32 %r5, [%d5]; mov.u64 %d6, values; cvta.param.u64 %d6, %d6;
        ld.u32 %r6, [%d6+12]; mad.lo.u32 %r3, %r3, 3, %r5; add.u32 %r3, %r3, %r6; st.global.u32 [%d1], %r3;
        """,
        parameters=".param .u64 in, .param .u64 out, .param .align 4 .b8 values[32], .param .u32 steps",
    )
    values = np.arange(100, 108, dtype=np.uint32).tobytes()
    x = np.random.default_rng(0).integers(0, 100, BLOCK, np.uint32)
    run_both(text, "kernel", 1, BLOCK, x, np.zeros(BLOCK, np.uint64), values, np.uint32(5))


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("transposed", ["", ".trans"])
def test_ldmatrix_uses_the_addresses_of_the_first_lanes_alone(number: int, transposed: str) -> None:
    registers = ", ".join(f"%r{4 + i}" for i in range(number))
    run(
        f"""
        mov.u32 %r2, tiles; mad.lo.u32 %r3, %r0, 16, %r2;
        st.shared.v4.u32 [%r3], {{%r0, %r1, %r0, %r1}}; bar.sync 0;
        setp.ge.u32 %p1, %r0, {8 * number}; @%p1 mov.u32 %r3, 0xFFFFFF0;
        ldmatrix.sync.aligned.m8n8.x{number}{transposed}.shared.b16 {{{registers}}}, [%r3];
        {" ".join(f"mad.lo.u32 %r4, %r4, 5, %r{4 + i};" for i in range(number))} st.global.u32 [%d1], %r4;
        """,
        block=32,
        module=".shared .align 16 .b8 tiles[512];",
    )


_MATRIX = """
    mov.u32 %r2, tiles; mad.lo.u32 %r3, %r0, 16, %r2; st.shared.v4.u32 [%r3], {%r0, %r1, %r0, %r1}; bar.sync 0;
    """


def test_ldmatrix_without_a_space_takes_generic_addresses() -> None:
    load = "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r4, %r5}, [%r3];"
    to_generic = "cvt.u64.u32 %d2, %r3; cvta.shared.u64 %d2, %d2;"
    generic = f"{to_generic} ldmatrix.sync.aligned.m8n8.x2.trans.b16 {{%r6, %r7}}, [%d2];"
    compare = "xor.b32 %r4, %r4, %r6; xor.b32 %r5, %r5, %r7; or.b32 %r4, %r4, %r5; st.global.u32 [%d1], %r4;"
    module = ".shared .align 16 .b8 tiles[512];"
    assert run(_MATRIX + load + generic + compare, block=32, module=module) == [0] * 32


@pytest.mark.parametrize("kind", [".shared", ""])
def test_ldmatrix_finds_no_matrix_at_an_address_of_the_other_kind(kind: str) -> None:
    window = "" if kind else "cvt.u32.u64 %r3, %d2; cvt.u64.u32 %d2, %r3;"
    body = f"{_MATRIX} cvt.u64.u32 %d2, %r3; cvta.shared.u64 %d2, %d2; {window}"
    load = f"ldmatrix.sync.aligned.m8n8.x1{kind}.b16 {{%r4}}, [%d2];"
    with pytest.raises(MemoryFault, match="__shared__ read of size 16"):
        run(body + load, block=32, module=".shared .align 16 .b8 tiles[512];")


@pytest.mark.parametrize("size", [4, 8, 16])
def test_asynchronous_copies_of_whole_elements_of_parts_and_of_nothing(size: int) -> None:
    kind = "cg" if size == 16 else "ca"
    body = f"""
        mov.u32 %r2, tiles; mad.lo.u32 %r2, %r0, 16, %r2; st.shared.v4.u32 [%r2], {{%r0, %r0, %r0, %r0}};
        ld.param.u64 %d2, [in]; and.b32 %r3, %r0, 15; mul.wide.u32 %d3, %r3, {size}; add.u64 %d2, %d2, %d3;
        cp.async.{kind}.shared.global [%r2], [%d2], {size}, %r4; cp.async.commit_group; cp.async.wait_group 0;
        ld.shared.v4.u32 {{%r5, %r6, %r7, %r8}}, [%r2]; mad.lo.u32 %r5, %r5, 3, %r6; mad.lo.u32 %r5, %r5, 3, %r7;
        mad.lo.u32 %r5, %r5, 3, %r8; st.global.u32 [%d1], %r5;
        """
    module = f".shared .align 16 .b8 tiles[{16 * BLOCK}];"
    run(body.replace(", %r4;", ";", 1), module=module)
    run(f"setp.lt.u32 %p1, %r1, 5; selp.b32 %r4, {size}, 0, %p1;" + body, module=module)
    run(f"min.u32 %r4, %r1, {size};" + body, module=module)
    run(f"rem.u32 %r4, %r1, {size + 3};" + body, module=module)
    one_source = body.replace("and.b32 %r3, %r0, 15;", "mov.u32 %r3, 1;")
    run(f"and.b32 %r4, %r0, {size};" + one_source, module=module)
    run(f"rem.u32 %r4, %r0, {size};" + one_source, module=module)


FAULTS = {
    "out of bounds": ("st.global.u32 [%d1+100000], %r1;", MemoryFault),
    "misaligned": ("st.global.u32 [%d1+2], %r1;", MemoryFault),
    "a null pointer": ("mov.u64 %d2, 0; ld.global.u32 %r2, [%d2];", MemoryFault),
    "one lane beyond the end": ("mad.wide.u32 %d2, %r0, 8, %d1; ld.global.u64 %d3, [%d2];", MemoryFault),
    "shared": (
        ".shared .b8 few[64]; mov.u32 %r2, few; mad.lo.u32 %r2, %r0, 4, %r2; ld.shared.u32 %r3, [%r2];",
        MemoryFault,
    ),
    "local": (".local .align 4 .b8 few[16]; mov.u64 %d2, few; ld.local.u32 %r3, [%d2+16];", MemoryFault),
    "generic": ("mov.u64 %d2, 16; cvta.shared.u64 %d2, %d2; ld.u32 %r3, [%d2];", MemoryFault),
    "constant memory is read-only": ("mov.u64 %d2, fixed; st.u32 [%d2], %r1;", MemoryFault),
    "trap in one lane": ("setp.eq.u32 %p1, %r0, 3; @!%p1 bra on; trap; on: st.global.u32 [%d1], %r1;", KernelFault),
    "guarded trap": ("setp.eq.u32 %p1, %r0, 3; @%p1 trap;", KernelFault),
    "a shuffle without its partners": (
        "setp.lt.u32 %p1, %r0, 7; @%p1 bra on; shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; add.u32 %r1, %r1, %r2;"
        "on: bar.warp.sync -1; st.global.u32 [%d1], %r1;",
        DeadlockError,
    ),
    "a dynamic parameter address": (
        "mov.u64 %d2, in; cvt.u64.u32 %d3, %ntid.x; mad.lo.u64 %d2, %d3, 4096, %d2; ld.param.u32 %r2, [%d2];"
        "st.global.u32 [%d1], %r2;",
        MemoryFault,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_both_refuse_what_a_device_refuses(name: str) -> None:
    body, kind = FAULTS[name]
    text = kernel(body, module=".const .align 4 .u32 fixed = 5;")
    caught: list[type[TriptychError]] = []
    for executor in ("generated", "oracle"):
        with pytest.raises(KernelFault) as error:
            run_both(text, "kernel", 1, 32, np.zeros(32, np.uint32), np.zeros(32, np.uint64), only=executor)
        caught.append(type(error.value))
    assert caught == [kind, kind]


def test_both_stop_a_loop_without_an_end() -> None:
    text = kernel("again: add.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r0, 3; @%p1 bra again; st.global.u32 [%d1], %r1;")
    for executor in ("generated", "oracle"):
        with scope(budget=500), pytest.raises(BudgetExceeded):
            run_both(text, "kernel", 1, 32, np.zeros(32, np.uint32), np.zeros(32, np.uint64), only=executor)


def test_what_only_orders_or_prepares_accesses_changes_nothing() -> None:
    body = """
        {prefetch} {fence}
        st.global.u64 [%d1], 7;
        """
    plain = run(body.format(prefetch="", fence=""))
    hinted = run(body.format(prefetch="prefetch.global.L1 [%d0]; prefetch.global.L2 [%d1];", fence="fence.sc.gpu;"))
    assert plain == hinted == [7] * BLOCK
