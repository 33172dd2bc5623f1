"""The sandbox as its users see it: what a task gets and gives, how its run can end, limits, and the sandbox's life."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from sandboxes import HERE, SMALL, answers, replied

from triptych.core.errors import SandboxError, UnknownName, UsageError
from triptych.sandbox import End, Limits, Outcome, Sandbox, processes
from triptych.sandbox.outcome import MOST_STRETCH, counted_s

RIVAL = """
import os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
while time.process_time() < 0.15:
    pass
os.write(1, b"x")
time.sleep(60)
"""


@pytest.mark.parametrize("payload", [b"", b"\0", bytes(range(256)) * 4095], ids=["nothing", "a zero", "a mebibyte"])
def test_bytes_go_in_and_come_out(sandbox: Sandbox, payload: bytes) -> None:
    outcome = sandbox.run("hostile:echo", payload)
    assert (outcome.end, outcome.reply, outcome.detail) == (End.REPLIED, payload, "")
    assert outcome.layers == sandbox.layers
    assert 0 < outcome.cpu_s < 5


def test_a_payload_may_be_larger_than_a_reply(sandbox: Sandbox) -> None:
    payload = os.urandom(3 << 20)
    assert replied(sandbox.run("hostile:digest", payload)) == replied(sandbox.run("hostile:digest", bytes(payload)))
    limits = replace(SMALL, reply_bytes=4 << 20)
    assert sandbox.run("hostile:echo", payload, limits=limits).reply == payload


def test_a_task_finds_nothing_of_its_parent(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_PARENT", "1")
    seen = answers(sandbox.run("hostile:surroundings", b""))
    assert not [name for name in seen["environment"] if "SECRET" in name or name.startswith(("PYTEST", "TRIPTYCH"))]
    assert seen["files"] == []
    assert seen["input"] == ""
    assert seen["descriptors"] == [0, 1, 2, 3]
    assert seen["modules"] == []


def test_tasks_find_nothing_of_each_other(sandbox: Sandbox) -> None:
    first = sandbox.run("hostile:surroundings", b"")
    assert sandbox.run("hostile:leave_files", b"").end is End.REPLIED
    assert sandbox.run("hostile:patch_modules", b"").end is End.REPLIED
    assert sandbox.run("hostile:surroundings", b"").reply == first.reply  # hashes of texts too


def test_what_a_sandbox_is_given() -> None:
    given = Sandbox(import_from=(HERE,), preload=("numpy",), environment={"GIVEN": "1"}, limits=SMALL)
    with given as sandbox:
        seen = answers(sandbox.run("hostile:surroundings", b""))
    assert "GIVEN" in seen["environment"]
    assert "numpy" in seen["modules"]


@pytest.mark.parametrize(
    ("task", "payload", "end", "detail"),
    [
        ("complain", b"not this way", End.EXITED, "ValueError: not this way"),
        ("complain_in_colour", b"", End.EXITED, "\ufffd]0;title\ufffd\ufffd[31mred\ufffd\n\tline"),
        ("no_bytes", b"", End.EXITED, "TypeError: a task returns bytes, this one returned str"),
        ("missing", b"", End.EXITED, "has no attribute 'missing'"),
        ("end_with", b"3", End.EXITED, "exit status 3"),
        ("end_with", b"0", End.EXITED, "exit status 0, without a reply"),
        ("end_with", b"70", End.EXITED, "exit status 70"),
        ("end_by", b"15", End.KILLED, "Terminated"),
        ("end_by", b"9", End.KILLED, "Killed"),
        ("abort", b"", End.KILLED, "Aborted"),
        ("crash", b"", End.KILLED, "Segmentation fault"),
        ("no_memory", b"", End.OUT_OF_MEMORY, "MemoryError"),
        ("interrupt", b"", End.KILLED, "Interrupt"),
    ],
)
def test_how_a_task_ends(sandbox: Sandbox, task: str, payload: bytes, end: End, detail: str) -> None:
    outcome = sandbox.run(f"hostile:{task}", payload)
    assert (outcome.end, outcome.reply) == (end, None)
    assert detail in outcome.detail
    assert len(outcome.detail) < 2000


@pytest.mark.parametrize(
    ("task", "payload", "limits", "end", "limit"),
    [
        ("sleep", b"30", replace(SMALL, wall_s=0.3), End.TIMED_OUT, "wall_s = 0.3"),
        ("spin", b"", replace(SMALL, wall_s=0.2), End.TIMED_OUT, "wall_s = 0.2"),
        ("spin", b"", replace(SMALL, cpu_s=0.2), End.TIMED_OUT, "cpu_s = 0.2"),
        ("spin_in_all", b"3", replace(SMALL, cpu_s=0.4), End.TIMED_OUT, "cpu_s = 0.4"),
        ("take_private", b"300000000", SMALL, End.OUT_OF_MEMORY, "MemoryError"),
        ("take_shared", b"50000000", replace(SMALL, memory_bytes=16 << 20), End.OUT_OF_MEMORY, "memory_bytes = "),
        ("take_in_all", b"14000000", replace(SMALL, memory_bytes=48 << 20), End.OUT_OF_MEMORY, "memory_bytes = "),
        ("large_reply", b"1048577", SMALL, End.REPLY_TOO_LARGE, "1048577 bytes, reply_bytes = 1048576"),
    ],
)
def test_a_limit_ends_a_task(sandbox: Sandbox, task: str, payload: bytes, limits: Limits, end: End, limit: str) -> None:
    outcome = sandbox.run(f"hostile:{task}", payload, limits=limits)
    assert (outcome.end, outcome.reply) == (end, None)
    assert limit in outcome.detail


def test_what_is_within_the_limits_is_fine(sandbox: Sandbox) -> None:
    assert replied(sandbox.run("hostile:large_reply", b"1048576")) == bytes(1 << 20)
    assert replied(sandbox.run("hostile:take_private", b"100000000")) == b"100000000"
    assert replied(sandbox.run("hostile:start_threads", b"10")) == b"10"
    assert replied(sandbox.run("hostile:fork_many", b"5")) == b"5"
    assert replied(sandbox.run("hostile:large_errors", b"2")) == b"2"
    assert replied(sandbox.run("prying:socket_pair", b"to itself")) == b"to itself"


@pytest.mark.parametrize("name", ["wall_s", "cpu_s", "memory_bytes", "scratch_bytes", "processes", "reply_bytes"])
def test_limits_are_positive(name: str) -> None:
    with pytest.raises(UsageError, match=f"a limit must be positive, but {name} is 0"):
        replace(SMALL, **{name: 0})


def test_time_in_which_others_had_the_processors_does_not_count() -> None:
    assert counted_s(100.0, 0.0) == 100.0
    assert counted_s(100.0, 70.0) == 30.0
    assert counted_s(100.0, 99.0) == 100.0 / MOST_STRETCH


def test_waiting_for_a_processor_is_seen() -> None:
    """Of two processes on one processor each waits for the other."""
    read, write = os.pipe()
    rivals = [subprocess.Popen([sys.executable, "-c", RIVAL], stdout=write) for _ in range(2)]
    try:
        os.close(write)
        assert os.read(read, 1) + os.read(read, 1) == b"xx"  # both have had their share of it
        used = processes.usage(frozenset(one.pid for one in rivals))
        assert 0 < used.waited_s < 600
        assert processes.usage(frozenset()).waited_s == 0
    finally:
        os.close(read)
        for one in rivals:
            one.kill()
            one.wait()


def test_a_reply_belongs_to_a_task_that_replied() -> None:
    with pytest.raises(AssertionError):
        Outcome(End.EXITED, b"forged", "", (), 0.0)


def test_a_sandbox_says_why_it_does_not_start() -> None:
    with pytest.raises(SandboxError, match="No module named 'no_such_module'"):
        Sandbox(preload=("no_such_module",)).run("hostile:echo", b"")
    with pytest.raises(UnknownName, match="sistem calls"):
        Sandbox(require=frozenset({"sistem calls"}))
    with pytest.raises(UnknownName, match="landlok"):
        Sandbox(left_out=frozenset({"landlok"}))
