"""What the parent makes of replies: a candidate's process may write anything."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from here import asked, captured, failure, read, size

from triptych.core.dtypes import DTYPES
from triptych.core.handles import AddressSpace, Handle, Storage
from triptych.core.plan import Allocate, Choose, Fill, Plan, Program
from triptych.core.serialise import MAGIC, pack
from triptych.judge.capture.inside import capture_task
from triptych.judge.capture.outside import PRELOAD, Captured, CaptureFailed, capture
from triptych.judge.capture.request import ArraySpec, CaptureSize
from triptych.judge.claims import join
from triptych.sandbox import Sandbox

SOURCE = "import triptych as tt\ndef solution(x):\n    return tt.zeros(64)"
HEADER: dict[str, object] = {"library": [], "differs": 0, "tampered": [], "printed": ""}
F32 = DTYPES["f32"]


def plan() -> Plan:
    """What the source asks for."""
    return captured(SOURCE).plans[0]


def code_of(reply: bytes) -> str:
    """How the reply is taken."""
    found = read(reply, asked(SOURCE))
    assert isinstance(found, CaptureFailed), found
    return found.code


def test_a_true_reply() -> None:
    found = read(join(HEADER, [pack(plan())]), asked(SOURCE))
    assert isinstance(found, Captured)
    assert found.plans == (plan(),)


def headers() -> list[object]:
    """Headers that are none."""
    changed: list[dict[str, object]] = [
        {"library": None}, {"library": [3]}, {"library": [{"operator": 1, "used": 0}]}, {"differs": "no"},
        {"differs": -1}, {"tampered": [1]}, {"tampered": {}}, {"printed": 3}, {"printed": "z" * (1 << 15)},
        {"failure": {"code": "passed", "message": ""}}, {"failure": {"code": "unsafe"}}, {"failure": "x"},
        {"failure": {"code": "unsafe", "message": "", "file": 3}},
        {"library": [{"operator": "a", "used": 0, "file": "f"}]},
    ]  # fmt: skip
    return [[], 3, None, {}, *({**HEADER, **one} for one in changed)]


@pytest.mark.parametrize("header", headers())
def test_forged_headers(header: object) -> None:
    body = json.dumps(header).encode()
    packed = pack(plan())
    parts = [len(body).to_bytes(8, "little"), body, len(packed).to_bytes(8, "little"), packed]
    assert code_of(b"triptych.judge/1\n" + b"".join(parts)) == "forged_reply"


def test_garbage() -> None:
    whole = join(HEADER, [pack(plan())])
    for reply in (b"", b"\0", pickle.dumps(plan()), whole[:-1], whole + b"\0", whole[1:], join(HEADER), join({}, [])):
        assert code_of(reply) == "forged_reply"
    assert code_of(join(HEADER, [pack(plan())] * 2)) == "forged_reply"
    assert code_of(join(HEADER, [b"triptych.plan/1\n" + b"x" * 64])) == "forged_reply"
    random = np.random.default_rng(0)
    for at in random.integers(0, len(whole), 200):
        spoilt = bytearray(whole)
        spoilt[at] ^= 1 << int(random.integers(8))
        found = read(bytes(spoilt), asked(SOURCE))
        assert isinstance(found, CaptureFailed) or found.plans == (plan(),)


def given(name: str = "x", length: int = 64, **other: object) -> Handle:
    """An input as a plan may have it."""
    storage = Storage(name, AddressSpace.FIRST_ADDRESS + (1 << 20), length * 4)
    return replace(Handle(storage, F32, (length,), (4,)), **other)  # type: ignore[arg-type]


def with_program(one: Plan, machine: str) -> Plan:
    """The plan with a program of CUDA for a machine."""
    return replace(one, programs={"p": Program(machine, "", "cuda", "sm_90")})


FORGERIES: dict[str, tuple[str, Callable[[Plan], Plan]]] = {
    "no input": ("forged_reply", lambda one: replace(one, inputs=())),
    "another name": ("forged_reply", lambda one: replace(one, inputs=(given("expected"),))),
    "two inputs": ("forged_reply", lambda one: replace(one, inputs=(*one.inputs, given("y2")))),
    "another length": ("forged_reply", lambda one: replace(one, inputs=(given(length=63),))),
    "a larger storage": (
        "forged_reply",
        lambda one: replace(one, inputs=(replace(given(), storage=replace(given().storage, size=512)),)),
    ),
    "a read-only storage": (
        "forged_reply",
        lambda one: replace(one, inputs=(replace(given(), storage=replace(given().storage, writable=False)),)),
    ),
    "another type": ("forged_reply", lambda one: replace(one, inputs=(given(dtype=DTYPES["s32"]),))),
    "made by itself": ("forged_reply", lambda one: replace(one, nodes=(*one.nodes, Allocate(one.inputs[0].storage)))),
    "memory of nobody": ("forged_reply", lambda one: replace(one, nodes=(*one.nodes, Fill(given("z"), 0)))),
    "a machine that there is not": ("forged_reply", lambda one: with_program(one, "gpu2")),
    "another language's machine": ("forged_reply", lambda one: with_program(one, "neuron")),
    "a value of a type without values": (
        "forged_reply",
        lambda one: replace(one, nodes=(*one.nodes, Fill(replace(one.outputs[0], dtype=DTYPES["tf32"]), 0))),
    ),
    "overlapping rows": (
        "shape", lambda one: replace(one, outputs=(replace(one.outputs[0], strides=(2,)),)),
    ),
    "no output": ("shape", lambda one: replace(one, outputs=())),
    "an output of another type": (
        "shape", lambda one: replace(one, outputs=(replace(one.outputs[0], dtype=DTYPES["u32"]),)),
    ),
    "an input as the output": ("output_not_stored", lambda one: replace(one, outputs=one.inputs)),
    "too many nodes": ("plan_refused", lambda one: replace(one, nodes=(*one.nodes, *[one.nodes[1]] * 50))),
    "too many nodes inside": (
        "plan_refused",
        lambda one: replace(one, nodes=(*one.nodes, Choose(("a",), (Plan((one.nodes[1],) * 50),)))),
    ),
    "too many bytes": (
        "plan_refused",
        lambda one: replace(one, nodes=(*one.nodes, Allocate(Storage("big", 1 << 40, 1 << 37)))),
    ),
}  # fmt: skip


def _unchecked(_: Plan) -> None:
    """What a process that packs a plan may leave out."""


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_plans(forgery: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triptych.judge.capture.outside.MOST_NODES", 50)
    code, forge = FORGERIES[forgery]
    with monkeypatch.context() as forging:
        forging.setattr("triptych.core.serialise.check_plan", _unchecked)
        packed = pack(forge(plan()))
    assert code_of(join(HEADER, [packed])) == code


def test_what_would_take_much_memory_to_read_is_not_read() -> None:
    long: dict[str, object] = {**HEADER, "more": [0] * (1 << 19)}
    assert code_of(join(long, [pack(plan())])) == "forged_reply"
    text = b"[" + b"{}," * (6 << 20) + b"{}]"
    body = len(text).to_bytes(8, "little") + text
    assert code_of(join(HEADER, [MAGIC + sha256(body).digest() + body])) == "forged_reply"


def test_outputs_lie_in_order() -> None:
    """A copy that is returned as a transposed view would be a transposition that nobody has made."""
    rows = CaptureSize((ArraySpec("x", "f32", (6, 4)),), (ArraySpec("y", "f32", (4, 6)),))
    source = "import triptych as tt\ndef solution(x):\n    return tt.zeros(%s)"
    found = failure(source % "(6, 4)).transpose(1, 0", rows)
    assert (found.code, "moves axes" in found.message) == ("shape", True)
    assert captured(source % "(6, 4)).reshape(4, 6", rows)
    assert captured("import triptych as tt\ndef solution(x):\n    return tt.zeros((4, 8))[:, :6]", rows)


def test_a_failure_that_is_claimed() -> None:
    reply = join({"failure": {"code": "host_error", "message": "m" * 100, "file": "solution.py", "line": 7}})
    found = read(reply, asked(SOURCE))
    assert isinstance(found, CaptureFailed)
    assert (found.code, found.message, str(found.where)) == ("host_error", "m" * 100, "solution.py:7")


def test_in_a_sandbox() -> None:
    endings = {
        "import os; os._exit(0)": "process_died",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": "process_died",
        "def solution(x): return x.item()": "touched_values",
    }
    with Sandbox(preload=(PRELOAD,)) as box:
        found = capture(box, asked(SOURCE, size(64)))
        assert isinstance(found, Captured), found
        assert found.plans == (plan(),)
        assert found.outcome.cpu_s > 0
        for source, code in endings.items():
            failed = capture(box, asked(source))
            assert isinstance(failed, CaptureFailed)
            assert failed.code == code
    assert capture_task(pickle.dumps(asked(SOURCE))) == join(HEADER, [pack(plan())])
