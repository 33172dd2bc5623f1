"""What the sandbox's tests share: where its tasks lie, limits that they may safely try, and processes seen outside."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from triptych.sandbox import End, Limits, Outcome, Sandbox

HERE = Path(__file__).parent
SMALL = Limits(
    wall_s=20,
    cpu_s=20,
    memory_bytes=256 << 20,
    scratch_bytes=4 << 20,
    processes=12,
    open_files=64,
    reply_bytes=1 << 20,
)
IDLE = 3
"""Processes of a sandbox between tasks: launcher, supervisor, zygote."""


def below(process: int) -> list[int]:
    """A process and all that descend from it, as this machine numbers them."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text("ascii").split()
    except OSError:
        return []
    return [process, *(each for child in children for each in below(int(child)))]


def processes_of(sandbox: Sandbox) -> list[int]:
    """Those of a sandbox that runs."""
    assert sandbox.process is not None
    return below(sandbox.process)


def all_end(processes: list[int], seconds: float = 10) -> bool:
    """Whether all of these end soon."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not any(_lives(process) for process in processes):
            return True
        time.sleep(0.01)
    return False


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def replied(outcome: Outcome) -> bytes:
    """What a task returned, which must have returned."""
    assert outcome.end is End.REPLIED, outcome
    assert outcome.reply is not None
    return outcome.reply


def answers(outcome: Outcome) -> dict[str, Any]:
    """What a task says of each of its attempts: the error's name, or `done`."""
    return json.loads(replied(outcome))


def asked(*values: object) -> bytes:
    """Values as a task takes them."""
    return json.dumps(values).encode()


def own_private_file(folder: Path) -> Path:
    """A file that nobody else may read."""
    path = folder / "private"
    path.write_text("secret", "utf-8")
    os.chmod(path, 0o600)
    return path
