"""Which replaced functions are named."""

from __future__ import annotations

import inspect
from types import FunctionType

import pytest

from triptych.judge.capture import inside
from triptych.judge.capture.tampering import changed_since, identities


def _other() -> None:
    pass


def _from(file: str) -> FunctionType:
    code = _other.__code__.replace(co_filename=file)
    return FunctionType(code, {})


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ("/scratch/candidate.py", ["inspect.getfile"]),
        ("<string>", ["inspect.getfile"]),
        ("/usr/lib/python3/site-packages/torch/package/package_importer.py", []),
        ("/usr/lib/python3/dist-packages/torch/package/package_importer.py", []),
    ],
)
def test_what_replaced_a_function_of_python_s(monkeypatch: pytest.MonkeyPatch, file: str, named: list[str]) -> None:
    before = identities()
    monkeypatch.setattr(inspect, "getfile", _from(file))
    assert changed_since(before) == named


def test_ours_are_replaced_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identities()
    monkeypatch.setattr(inside, "capture_task", _from("/usr/lib/python3/site-packages/other.py"))
    assert changed_since(before) == ["triptych.judge.capture.inside.capture_task"]
