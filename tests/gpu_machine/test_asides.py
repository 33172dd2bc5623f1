"""Short branches that the converged form runs itself: values, counters, and which forms a kernel needs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import triptych as tt
from triptych.gpu.run.kernel import Kernel, KernelCode, kernel_of
from triptych.gpu.run.stage import stage_of

SOURCE = r"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 y, .param .u32 limit) {
  .reg .pred %p, %odd; .reg .b64 %a, %o; .reg .b32 %t, %n, %v, %w;
  mov.u32 %t, %tid.x; ld.param.u32 %n, [limit]; ld.param.u64 %a, [y]; mul.wide.u32 %o, %t, 4; add.s64 %a, %a, %o;
  mov.u32 %v, %t; mov.u32 %w, 7; setp.lt.u32 %p, %t, %n; and.b32 %o32, %t, 1; setp.eq.u32 %odd, %o32, 1;
  BRANCH
  BEHIND: mad.lo.u32 %v, %v, 100, %w; selp.u32 %o32, 50, 0, %odd; add.u32 %v, %v, %o32; st.global.u32 [%a], %v;
  ret;
}
""".replace("%v, %w;", "%v, %w, %o32;", 1)
IF = "@!%p bra BEHIND; add.u32 %v, %v, 1; mov.u32 %w, %t; not.pred %odd, %odd;"
EITHER = (
    "@%p bra LOW; mov.u32 %w, 1; xor.b32 %v, %v, 8; bra BEHIND; LOW: mov.u32 %w, 2; atom.global.add.u32 %v, [%a], 3;"
)
LOOP = "@!%p bra BEHIND; AGAIN: add.u32 %v, %v, 1; setp.lt.u32 %p, %v, 40; @%p bra AGAIN;"
VOTE = "@!%p bra BEHIND; activemask.b32 %w; vote.sync.ballot.b32 %v, %odd, %w;"


@pytest.fixture
def forms(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The forms that are made or loaded, as they are; what an earlier test left in memory is not there."""
    found: list[str] = []
    code: Callable[[Kernel, str], KernelCode] = Kernel.code

    def noted(kernel: Kernel, form: str) -> KernelCode:
        found.append(form)
        return code(kernel, form)

    kernel_of.cache_clear()
    stage_of.cache_clear()
    monkeypatch.setattr(Kernel, "code", noted)
    return found


def run(branch: str, limit: int) -> tuple[np.ndarray, tt.LaunchReport]:
    y = np.arange(64, dtype=np.uint32) * 5
    report = tt.ptx.compile(SOURCE.replace("BRANCH", branch))["k"][1, 64](y, limit)
    return y, report


def behind(v: np.ndarray, w: np.ndarray, odd: np.ndarray) -> list[int]:
    return (v * 100 + w + 50 * odd).tolist()


@pytest.mark.parametrize("limit", [0, 5, 32, 40, 64])
def test_an_if_without_else(limit: int, forms: list[str]) -> None:
    y, report = run(IF, limit)
    t = np.arange(64)
    low, odd = t < limit, t % 2 == 1
    assert y.tolist() == behind(t + low, np.where(low, t, 7), odd != low)
    assert set(forms) == {"converged"}
    parts = limit % 32 != 0
    assert report.counters.value("branches.divergent") == parts
    warps = 2 * 16 + 3 * -(-limit // 32)
    assert report.counters.value("instructions.warp") == warps
    assert report.counters.value("instructions.thread") == 64 * 16 + 3 * limit


@pytest.mark.parametrize("limit", [0, 5, 40, 64])
def test_two_ways_that_meet(limit: int, forms: list[str]) -> None:
    y, report = run(EITHER, limit)
    t = np.arange(64)
    low, odd = t < limit, t % 2 == 1
    assert y.tolist() == behind(np.where(low, t * 5, t ^ 8), np.where(low, 2, 1), odd)
    assert set(forms) == {"converged"}
    assert report.counters.value("branches.divergent") == (limit % 32 != 0)


def test_a_loop_and_named_lanes_are_no_asides(forms: list[str]) -> None:
    y, _ = run(LOOP, 5)
    t = np.arange(64)
    assert y.tolist() == behind(np.where(t < 5, 40, t), np.full(64, 7), t % 2 == 1)
    assert "masked" in forms
    forms.clear()
    y, _ = run(VOTE, 5)
    assert y.tolist() == behind(np.where(t < 5, 0b01010, t), np.where(t < 5, 31, 7), t % 2 == 1)
    assert "masked" in forms


WAITING = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 flag) {
  .reg .pred %p, %e; .reg .b64 %a, %f; .reg .b32 %t, %v, %x;
  mov.u32 %t, %tid.x; ld.param.u64 %f, [out]; mad.wide.u32 %a, %t, 4, %f; mov.u32 %v, 0;
  setp.ge.u32 %e, %t, 32; @%e bra SET;
  setp.lt.u32 %p, %t, 9; mov.u32 %x, %ntid.x; setp.eq.u32 %e, %x, 7; @%e bra BEHIND; bra SHORT;
  AGAIN: @!%p bra BEHIND;
  SHORT: add.u32 %v, %v, 1;
  BEHIND: ld.volatile.global.u32 %x, [%f+256]; setp.eq.u32 %e, %x, 1; @!%e bra AGAIN;
  st.global.u32 [%a], %v; ret;
  SET: ld.param.u32 %x, [flag]; st.volatile.global.u32 [%f+256], %x; ret;
}
"""


def test_a_way_back_to_a_short_block_is_no_aside() -> None:
    """The loop has two entries; its lanes wait for the other warp."""
    y = np.zeros(65, np.uint32)
    kernel = tt.ptx.compile(WAITING)["k"]
    kernel[1, 64](y, 1)
    assert (y[9:32] == 1).all()
    assert (y[:9] >= 1).all()
    with tt.scope(budget=1000), pytest.raises((tt.BudgetExceeded, tt.DeadlockError)):
        kernel[1, 64](np.zeros(65, np.uint32), 2)
