"""What the process that executes says is a claim: whatever is no answer to what it was asked is found to be forged."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from plans import captured

import triptych as tt
from triptych.core.plan import Plan
from triptych.core.serialise import pack
from triptych.core.settings import scope
from triptych.judge import Cheated, Passed, Reason, Wrong
from triptych.judge.candidate import task
from triptych.judge.claims import join
from triptych.judge.execution.inside import execute_task
from triptych.judge.execution.outside import read_reply
from triptych.judge.execution.request import ExecutionRequest, Ran, Run, Stopped
from triptych.judge.verification.trials import draw
from triptych.kernels import nki
from triptych.operators import operator

TASK = task(operator("vec_add"), seed=1)


@pytest.fixture(scope="module")
def asked() -> tuple[Plan, ExecutionRequest]:
    plan = captured(nki.vec_add, TASK)
    trials = draw(TASK.operator, TASK.sizes[0], TASK.dtype, 1)
    runs = Run(0, is_watched=True), Run(1)
    inputs = tuple(trial.inputs for trial in trials)
    return plan, ExecutionRequest(pack(plan), inputs, runs, tt.chips.load("trn2"), (), {})


@pytest.fixture(scope="module")
def reply(asked: tuple[Plan, ExecutionRequest], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    with scope(cache_folder=tmp_path_factory.mktemp("cache")):
        return execute_task(pickle.dumps(asked[1]))


def parts(message: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """A message's header and blobs, believed."""
    position, found = message.index(b"\n") + 1, list[bytes]()
    while position < len(message):
        length = int.from_bytes(message[position : position + 8], "little")
        found.append(message[position + 8 : position + 8 + length])
        position += 8 + length
    return json.loads(found[0]), found[1:]


def test_what_is_said(asked: tuple[Plan, ExecutionRequest], reply: bytes) -> None:
    done = read_reply(*asked, reply)
    first, second = done.runs
    assert isinstance(first, Ran)
    assert isinstance(second, Ran)
    assert [len(one) for one in first.outputs] == [4000]
    assert first.outputs != second.outputs
    (record,) = first.records
    assert record.counters.value("flops.vector") == 1000
    assert record.executed is not None
    assert {one.storage.name: (one.loaded.sum(), one.stored.sum()) for one in record.touched} == {
        "a": (4000, 0), "b": (4000, 0), "c": (0, 4000),
    }  # fmt: skip
    assert second.records == ()


def _set(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(header: dict[str, Any]) -> None:
        *names, last = path.split("/")
        at: Any = header
        for name in names:
            at = at[int(name) if name.isdigit() else name]
        at[last] = value

    return change


FORGED = [
    _set("runs", []),
    _set("runs", "all"),
    _set("runs/0/outputs", [10**6]),
    _set("runs/0/outputs", []),
    _set("runs/0/outputs", [-1]),
    _set("runs/0/inputs", {}),
    _set("runs/0/launches/0/machine", "quantum"),
    _set("runs/0/launches/0/language", "fortran"),
    _set("runs/0/launches/0/counters", {"flops.vector": -1}),
    _set("runs/0/launches/0/counters", {"flops.vector": float("nan")}),
    _set("runs/0/launches/0/counters", {"no.such.counter": 1}),
    _set("runs/0/launches/0/grid", [1, 1]),
    _set("runs/0/launches/0/executed", None),
    _set("runs/0/launches/0/touched/0/unit", 64),
    _set("runs/0/launches/0/touched/0/storage", 99),
    _set("runs/0/launches/0/touched/0/loaded", 0),
    _set("runs/0/launches/0/findings", [{"check": "mindcheck", "message": "", "where": None}]),
    _set("runs/0/fault", {"code": "passed", "message": "", "where": None}),
    _set("dead", [0]),
    _set("cached", [{"path": "../../.bashrc", "data": 0}]),
    _set("cached", [{"path": "/etc/passwd", "data": 0}]),
]


@pytest.mark.parametrize("change", FORGED, ids=range(len(FORGED)))
def test_forged(change: Callable[[dict[str, Any]], None], asked: tuple[Plan, ExecutionRequest], reply: bytes) -> None:
    header, blobs = parts(reply)
    change(header)
    body = [json.dumps(header).encode(), *blobs]
    message = reply[: reply.index(b"\n") + 1] + b"".join(len(one).to_bytes(8, "little") + one for one in body)
    (stopped,) = read_reply(*asked, message).runs
    assert isinstance(stopped, Stopped)
    assert stopped.code == "forged_reply"


@pytest.mark.parametrize("message", [b"", b"passed", join({"runs": [{"passed": True}], "dead": [], "cached": []})])
def test_no_reply(message: bytes, asked: tuple[Plan, ExecutionRequest]) -> None:
    (stopped,) = read_reply(*asked, message).runs
    assert isinstance(stopped, Stopped)
    assert stopped.code == "forged_reply"


def test_cut_short(asked: tuple[Plan, ExecutionRequest], reply: bytes) -> None:
    for length in range(0, len(reply), len(reply) // 50):
        (stopped,) = read_reply(*asked, reply[:length]).runs
        assert isinstance(stopped, Stopped)


def test_states_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="not in the table of reasons"):
        Reason("nothing", "at all")
    with pytest.raises(ValueError, match="no reason for the verdict 'wrong'"):
        Wrong(Reason("decoy", ""))
    with pytest.raises(ValueError, match="passes only with a certificate"):
        Passed(())
    assert Cheated(Reason("decoy", "")).certificate is None
