"""The life of a sandbox's processes: it starts again when it has died, and ends with its parent, whatever runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sandboxes import HERE, SMALL, all_end, below, processes_of, replied

from triptych.sandbox import End, Sandbox


def test_a_sandbox_that_has_died_starts_again() -> None:
    with Sandbox(import_from=(HERE,), limits=SMALL) as sandbox:
        assert replied(sandbox.run("hostile:echo", b"1")) == b"1"
        before = processes_of(sandbox)
        os.kill(before[1], signal.SIGKILL)
        assert all_end(before[1:])
        assert replied(sandbox.run("hostile:echo", b"2")) == b"2"
        lost = threading.Timer(0.3, os.kill, (processes_of(sandbox)[2], signal.SIGKILL))  # the zygote, under its task
        lost.start()
        assert sandbox.run("hostile:sleep", b"15").end is End.LOST
        lost.join()
        assert replied(sandbox.run("hostile:echo", b"3")) == b"3"
        last = processes_of(sandbox)
    assert all_end(last)


def test_another_thread_can_end_a_task() -> None:
    with Sandbox(import_from=(HERE,), limits=SMALL) as sandbox:
        first = threading.Timer(0.05, sandbox.interrupt)  # while it starts, or soon after
        first.start()
        assert sandbox.run("hostile:sleep", b"15").end is End.LOST
        assert replied(sandbox.run("hostile:echo", b"1")) == b"1"
        processes = processes_of(sandbox)
        second = threading.Timer(0.3, sandbox.interrupt)
        second.start()
        assert sandbox.run("hostile:sleep", b"15").end is End.LOST
        assert all_end(processes)
        assert replied(sandbox.run("hostile:echo", b"2")) == b"2"
        first.join()
        second.join()


def test_a_fork_of_the_parent_leaves_the_sandbox_alone(sandbox: Sandbox) -> None:
    child = os.fork()
    if child == 0:
        sandbox.close()
        os._exit(0 if sandbox.process is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert replied(sandbox.run("hostile:echo", b"ours")) == b"ours"


PARENT = """
import sys
from pathlib import Path
from triptych.sandbox import Sandbox
sandbox = Sandbox(import_from=(Path(sys.argv[1]),))
sandbox.layers
print(sandbox.process, flush=True)
if sys.argv[2] == "end":
    sys.exit()
sandbox.run("prying:daemonise", b"stay")
"""


@pytest.mark.parametrize("how", ["end", "SIGINT", "SIGKILL"])
def test_nothing_outlives_the_parent(how: str) -> None:
    command = [sys.executable, "-c", PARENT, str(HERE), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        launcher = int(parent.stdout.readline())
        if how != "end":
            until_it_runs(launcher)
        processes = below(launcher)
        if how != "end":
            parent.send_signal(getattr(signal, how))
        assert parent.wait(20) == {"end": 0, "SIGINT": -signal.SIGINT, "SIGKILL": -signal.SIGKILL}[how]
        assert ("KeyboardInterrupt" in parent.stderr.read()) == (how == "SIGINT")
    assert all_end([launcher, *processes])


def until_it_runs(launcher: int) -> None:
    """Waits until a task has processes of its own: its first, itself, and the one that it left."""
    for _ in range(1000):
        if len(below(launcher)) >= 6:
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"no task runs below {launcher}")


def test_a_sandbox_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for left_out in (frozenset[str](), frozenset({"files"})):
        with Sandbox(import_from=(HERE,), limits=SMALL, left_out=left_out) as sandbox:
            assert sandbox.run("hostile:leave_files", b"").end is End.REPLIED
            assert json.loads(replied(sandbox.run("hostile:surroundings", b"")))["files"] == []
        assert os.listdir(tmp_path) == []
