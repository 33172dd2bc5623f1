"""`wgmma` as it must not be: what is refused, what stops a launch, and what registers are touched too early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from both import run_both
from wgmma_kernels import Case, Layout, kernel, opcode

import triptych as tt

CASE = Case(opcode("f16", 8), b_layout=Layout(0, True, 128, 256, 2048))
SHARED = 2048 + 256


def launch(text: str, case: Case = CASE, *, only: str = "", shared_bytes: int = SHARED) -> None:
    """Runs a kernel of `wgmma_kernels`; both executors, or `only` one."""
    registers, image = np.zeros((4, case.threads), np.uint32), np.zeros(shared_bytes, np.uint8)
    descriptors = np.uint64(case.a_layout.descriptor), np.uint64(case.b_layout.descriptor)
    run_both(
        text, "k", 1, case.threads, registers, image, registers, *descriptors, np.uint32(case.keeps),
        np.uint32(image.size), shared_bytes=image.size, only=only,
    )  # fmt: skip


@pytest.mark.parametrize("only", ["generated", "oracle"])
@pytest.mark.parametrize(
    ("case", "error", "message"),
    [
        (replace(CASE, b_layout=replace(CASE.b_layout, start=2048 + 16)), tt.MemoryFault, "shared"),
        (replace(CASE, a_layout=replace(CASE.a_layout, stride=320)), tt.MemoryFault, "shared"),
        (replace(CASE, threads=96), tt.WarpgroupMisuse, "no four warps|GROUP"),
        (replace(CASE, guard="@%p2 "), tt.DivergentWarp, "lanes"),
    ],
)
def test_what_stops_a_launch(case: Case, error: type[tt.KernelFault], message: str, only: str) -> None:
    text = kernel(case, 4).replace("copy:\n", "setp.lt.u32 %p2, %t0, 70;\ncopy:\n")
    with pytest.raises(error, match=message):
        launch(text, case, only=only)


def test_a_matrix_may_end_where_shared_memory_does() -> None:
    launch(kernel(CASE, 4))
    with pytest.raises(tt.MemoryFault, match="Invalid __tensor shared__ read of size 16 bytes") as caught:
        launch(kernel(CASE, 4), shared_bytes=SHARED - 16)
    assert caught.value.memory is not None
    assert caught.value.memory.address == SHARED - 16


@pytest.mark.parametrize("only", ["generated", "oracle"])
def test_lanes_that_disagree(only: str) -> None:
    text = kernel(CASE, 4)
    by_lane = "cvt.u64.u32 %x0, %t0; add.u64 %da, %da, %x0;\nwgmma.fence"
    with pytest.raises(tt.WarpgroupMisuse, match=r"different descriptors|LANES"):
        launch(text.replace("wgmma.fence", by_lane), only=only)
    with pytest.raises(tt.WarpgroupMisuse, match=r"predicates|LANES"):
        launch(text.replace("setp.ne.u32 %p1, %t3, 0;", "setp.ne.u32 %p1, %t0, 33;"), only=only)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((".target sm_90a", ".target sm_90"), "it needs .target sm_90a, and this module's is sm_90"),
        ((", 1, 1, 0, 0;", ", 0, 1, 0, 0;"), "scale_a must be -1 or 1, not 0"),
        ((", 1, 1, 0, 0;", ", 1, 1, 0, 2;"), "transpose_b must be 0 or 1, not 2"),
        (("%p1, 1, 1, 0, 0;", "3, 1, 1, 0, 0;"), "p must be 0 or 1, not 3"),
        ((", 1, 1, 0, 0;", ", 1, 1, 0;"), "it takes transpose_a where a is a descriptor"),
        (("%d2, %d3}, %da", "%d2}, %da"), "d has 4 registers here, not 3"),
        (("%d2, %d3}, %da", "%d2, %d3}, {%a0, %a1}"), "a has 4 registers here, not 2"),
        (("%d2, %d3}, %da", "%d2, _}, %da"), "an operand is of a kind"),
    ],
)
def test_what_is_refused(change: tuple[str, str], message: str) -> None:
    with pytest.raises(tt.PtxSyntaxError, match=message):
        launch(kernel(CASE, 4).replace(*change), only="generated")


@pytest.mark.parametrize(
    "modifiers",
    ["m64n12k16.f32.f16.f16", "m64n40k32.s32.s8.s8", "m64n8k16.f16.bf16.bf16", "m64n8k256.s32.b1.b1.xor.popc", "sp"],
)
def test_what_there_is_not(modifiers: str) -> None:
    text = kernel(CASE, 4).replace(CASE.opcode, f"wgmma.mma_async.sync.aligned.{modifiers}")
    with pytest.raises(tt.UnsupportedInstruction, match="is not supported"):
        launch(text, only="generated")


# --- Registers that are touched too early ---------------------------------------------------------------------------

_D = "{%f0, %f1, %f2, %f3}"
_MULTIPLY = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {_D}, %rd2, %rd2, 1, 1, 1, 0, 0;"
_BY_REGISTERS = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {_D}, {{%r0, %r1, %r2, %r3}}, %rd2, 1, 1, 1, 0;"
_FENCE, _COMMIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;"
_WAIT = "wgmma.wait_group.sync.aligned"
_PRODUCT = (_MULTIPLY, _COMMIT, f"{_WAIT} 0;")
_STORE = "st.global.f32 [%rd1], %f0;"


def found(*lines: str) -> Sequence[str]:
    """What the check says of a kernel of these lines, which has written all registers."""
    start = [f"mov.f32 %f{i}, 0f00000000; mov.b32 %r{i}, 0;" for i in range(4)]
    text = "\n".join(
        (
            ".version 8.0\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 data[4096];",
            ".visible .entry k(.param .u64 p) {\n.reg .f32 %f<9>; .reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .pred %p<3>;",
            "ld.param.u64 %rd1, [p]; mov.u64 %rd2, 0; mov.u32 %r8, 0;",
            *start, *lines, "ret;\n}\n",
        )
    )  # fmt: skip
    with tt.profile(chip="h100", target="sm_90") as profile:
        tt.ptx.compile(text)["k"][1, 128](np.zeros(128, np.float32))
    for finding in profile.launches[0].findings:
        assert finding.check == "synccheck"
    return [finding.message for finding in profile.launches[0].findings]


def test_results_that_are_waited_for() -> None:
    assert not found(_FENCE, _MULTIPLY, _MULTIPLY, _COMMIT, f"{_WAIT} 0;", _STORE)
    assert not found(_FENCE, _BY_REGISTERS, _COMMIT, f"{_WAIT} 0;", "mov.b32 %r0, 1;", _STORE)
    # Several groups are on their way, and the last wait covers them all.
    loop = ("again:", _FENCE, _MULTIPLY, _COMMIT, f"{_WAIT} 1;", "add.u32 %r8, %r8, 1;", "setp.lt.u32 %p0, %r8, 3;")
    assert not found(*loop, "@%p0 bra again;", f"{_WAIT} 0;", _STORE)


def test_copies_are_no_use() -> None:
    assert not found(_FENCE, _MULTIPLY, _COMMIT, "mov.f32 %f5, %f0;", f"{_WAIT} 0;", "st.global.f32 [%rd1], %f5;")
    (message,) = found(_FENCE, _MULTIPLY, _COMMIT, "mov.f32 %f5, %f0;", "st.global.f32 [%rd1], %f5;")
    assert "'st.global.f32'" in message
    assert "reads %f5, which 'wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16'" in message


@pytest.mark.parametrize(
    "lines",
    [
        (_FENCE, _MULTIPLY, _STORE),
        (_FENCE, _MULTIPLY, _COMMIT, _STORE),
        (_FENCE, _MULTIPLY, f"{_WAIT} 0;", _STORE),  # not committed, it is of no group
        (_FENCE, _MULTIPLY, _COMMIT, f"{_WAIT} 1;", _STORE),
        (_FENCE, _MULTIPLY, _COMMIT, "setp.eq.u32 %p0, %r8, 0;", "@%p0 bra on;", f"{_WAIT} 0;", "on:", _STORE),
    ],
)
def test_results_that_are_read_too_early(lines: Sequence[str]) -> None:
    (message,) = found(*lines)
    assert "reads %f0" in message
    assert "no wgmma.wait_group covers it" in message


def test_registers_that_are_written_too_early() -> None:
    (message,) = found(_FENCE, _BY_REGISTERS, _COMMIT, "add.u32 %r1, %r8, 1;", f"{_WAIT} 0;", _STORE)
    assert "writes %r1" in message
    (message,) = found(_FENCE, _MULTIPLY, _COMMIT, "mov.f32 %f3, 0f00000000;", f"{_WAIT} 0;", _STORE)
    assert "writes %f3" in message


def test_registers_that_are_multiplied_without_a_fence() -> None:
    (message,) = found(_MULTIPLY, _COMMIT, f"{_WAIT} 0;", _STORE)
    assert "multiplies %f0, which 'mov.f32'" in message
    changed = "add.f32 %f2, %f2, %f2;"
    assert len(found(_FENCE, *_PRODUCT, changed, *_PRODUCT, _STORE)) == 1
    assert not found(_FENCE, *_PRODUCT, changed, _FENCE, *_PRODUCT, _STORE)


def test_what_no_launch_reaches_is_not_told() -> None:
    assert not found(
        _FENCE, _MULTIPLY, _COMMIT, "setp.ne.u32 %p0, %r8, 0;", "@%p0 bra early;", f"{_WAIT} 0;", "bra done;",
        "early:", _STORE, "done:",
    )  # fmt: skip
