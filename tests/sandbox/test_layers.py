"""Layers alone and together: with each of them the sandbox says what holds, and that much is contained."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
from sandboxes import HERE, IDLE, SMALL, all_end, answers, own_private_file, processes_of, replied

from triptych.core.errors import SandboxError
from triptych.sandbox import End, Sandbox, landlock
from triptych.sandbox.ground import (
    FILES,
    HOSTNAME,
    IPC,
    LANDLOCK,
    MECHANISMS,
    NETWORK,
    PROCESSES,
    SYSTEM_CALLS,
    USER_NAMESPACE,
)
from triptych.sandbox.layers import ALL_THAT_ANYONE_CAN_HAVE, BY_NAME, LAYERS

ALWAYS = frozenset({"capabilities", "file size", "descriptors", "memory", "cpu", "watch", "environment", "debugging"})
"""Layers that need nothing that a machine may refuse."""
NAMESPACES = (USER_NAMESPACE, FILES, PROCESSES, NETWORK, IPC, HOSTNAME)


def with_only(mechanisms: Collection[str]) -> Sandbox:
    left_out = frozenset(MECHANISMS) - set(mechanisms)
    return Sandbox(import_from=(HERE,), preload=("hostile", "prying"), limits=SMALL, left_out=left_out)


def test_all_layers_hold_together(sandbox: Sandbox) -> None:
    """On a machine that allows all, as root; another user lacks no more than a user of its own."""
    lacking = set(BY_NAME) - set(sandbox.layers)
    assert lacking <= (set() if os.geteuid() == 0 else {"own user"})
    assert set(sandbox.layers) >= ALL_THAT_ANYONE_CAN_HAVE == set(BY_NAME) - {"own user"}


@pytest.mark.parametrize(
    ("mechanisms", "held"),
    [
        ((), ()),
        ((LANDLOCK,), ("landlock", "signals")),
        ((SYSTEM_CALLS,), ("system calls", "signals")),
        ((USER_NAMESPACE, NETWORK), ("network",)),
        ((USER_NAMESPACE, FILES), ("files",)),
        (NAMESPACES, ("files", "processes", "signals", "network", "ipc", "scratch")),
    ],
    ids=["none", "landlock", "seccomp", "network", "files", "namespaces"],
)
def test_mechanisms_alone(mechanisms: tuple[str, ...], held: tuple[str, ...], tmp_path: Path) -> None:
    """What holds is said, and what does not hold is not; whatever there is, a task ends with all that it started."""
    private = own_private_file(tmp_path)
    with with_only(mechanisms) as sandbox:
        assert set(sandbox.layers) - {"process limit", "own user"} == ALWAYS | set(held)
        before = processes_of(sandbox)
        outcome = sandbox.run("hostile:fork_many", b"16")
        assert outcome.end is End.TOO_MANY_PROCESSES or replied(outcome) == b"11"
        assert replied(sandbox.run("prying:daemonise", b"")) == b"left one"
        assert processes_of(sandbox) == before
        assert len(before) == IDLE
        reads = replied(sandbox.run("prying:read_file", str(private).encode()))
        hidden = FILES in mechanisms
        assert reads == (b"ENOENT" if hidden else b"EACCES" if LANDLOCK in mechanisms else b"done")
        if "signals" in held:
            said = answers(sandbox.run("prying:ask_processes", json.dumps([os.getpid(), *before]).encode()))
            assert "done" not in said.values()
        assert sandbox.run("hostile:leave_files", b"").end is End.REPLIED
        assert answers(sandbox.run("hostile:surroundings", b""))["files"] == []
    assert all_end(before)


def test_without_namespaces_files_and_signals_are_confined(tmp_path: Path) -> None:
    """As in a container that forbids namespaces: Landlock, seccomp and limits need none."""
    private = own_private_file(tmp_path)
    with with_only((LANDLOCK, SYSTEM_CALLS)) as sandbox:
        assert {"landlock", "system calls", "signals"} <= set(sandbox.layers)
        tried = answers(sandbox.run("prying:reach_file", str(private).encode()))
        assert "done" not in tried.values()
        assert "done" not in answers(sandbox.run("prying:write_readable", str(HERE).encode())).values()
        assert set(answers(sandbox.run("prying:connect", b'[9, "nobody"]')).values()) == {"ENOSYS"}
        others = [os.getpid(), *processes_of(sandbox)]  # never −1 here: a hole would reach all processes
        assert "done" not in answers(sandbox.run("prying:ask_processes", json.dumps(others).encode())).values()
        assert "done" not in answers(sandbox.run("prying:kill_processes", json.dumps(others).encode())).values()
        looked = answers(sandbox.run("prying:look_into", json.dumps(others).encode()))
        assert set(looked.values()) <= {"EACCES", "EPERM"}
    assert private.read_text("utf-8") == "secret"


def test_less_than_required_runs_nothing() -> None:
    required = Sandbox(
        import_from=(HERE,), left_out=frozenset({LANDLOCK}), require=frozenset({"landlock", "system calls"})
    )
    with pytest.raises(SandboxError, match="do not hold here: landlock\n  landlock: left out"):
        required.run("hostile:echo", b"")
    assert required.process is None
    with Sandbox(import_from=(HERE,), require=frozenset({"landlock"})) as sandbox:
        assert replied(sandbox.run("hostile:echo", b"x")) == b"x"


UNPRIVILEGED = """
import os, sys
from pathlib import Path
from triptych.sandbox import Sandbox, system
user, group = os.geteuid(), os.getegid()
system.unshare(system.NEW_USER)
Path("/proc/self/setgroups").write_text("deny")
Path("/proc/self/uid_map").write_text(f"1234 {user} 1")
Path("/proc/self/gid_map").write_text(f"1234 {group} 1")
system.drop_capabilities()
with Sandbox(import_from=(Path(sys.argv[1]),)) as sandbox:
    outcome = sandbox.run("hostile:echo", b"x")
    print(os.geteuid(), outcome.end.name, ",".join(outcome.layers), flush=True)
"""


def test_a_parent_without_privileges() -> None:
    """Nothing that holds for it takes root but a user of its own; the limit of processes does not count root's."""
    done = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED, str(HERE)], capture_output=True, text=True, check=True, timeout=120
    )
    user, end, layers = done.stdout.strip().split(" ", 2)
    assert (user, end) == ("1234", "REPLIED")
    assert set(BY_NAME) - set(layers.split(",")) <= {"own user", "process limit"}


def test_the_table_is_whole() -> None:
    assert len(BY_NAME) == len(LAYERS)
    assert set(MECHANISMS) - set(BY_NAME) == {USER_NAMESPACE, HOSTNAME}
    for layer in LAYERS:
        assert layer.stops
        assert layer.applied
        assert layer.proof.endswith(".")
        assert (layer.probe is None) == bool(layer.seen)


def test_landlock_knows_its_rights() -> None:
    assert landlock.all_rights() & landlock.READ == landlock.READ
    assert landlock.all_rights().bit_length() in (13, 14, 15, 16)
