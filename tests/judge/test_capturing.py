"""What speaks against a candidate beside its plans."""

from __future__ import annotations

import pytest
from plans import captured

from triptych.core.source import SourceLocation
from triptych.judge.candidate import task
from triptych.judge.capture.outside import Captured, Library
from triptych.judge.capture.plans import believed
from triptych.judge.verdict import Cheated
from triptych.judge.workshop import CapturedPlans
from triptych.kernels import nki
from triptych.operators import operator
from triptych.sandbox import End, Outcome

OUTCOME = Outcome(End.REPLIED, b"", "", (), 0.0)
UNUSED = Library("aten::randn", None, used=False)
USED = Library("aten::add", SourceLocation("solution.py", 3), used=True)


def found(*library: Library, differs: bool = False, tampered: tuple[str, ...] = ()) -> Captured:
    plan = captured(nki.vec_add, task(operator("vec_add")))
    return Captured((plan,), library, differs, tampered, "", OUTCOME)


def test_believed() -> None:
    plans = believed(found(UNUSED))
    assert isinstance(plans, CapturedPlans)
    assert (plans.languages, plans.machine) == (("nki",), "neuron")


@pytest.mark.parametrize(
    ("captured", "code", "message"),
    [
        (found(UNUSED, USED, USED), "library_work", "work outside of kernels: aten::add at solution.py:3"),
        (found(differs=True), "capture_differs", "the second call of a size asks for other work than the first"),
        (found(USED, tampered=("time.time",)), "tampered", "replaced while it was captured: time.time"),
    ],
)
def test_not_believed(captured: Captured, code: str, message: str) -> None:
    verdict = believed(captured)
    assert isinstance(verdict, Cheated)
    assert (verdict.reason.code, verdict.reason.message) == (code, message)
