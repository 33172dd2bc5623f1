"""`import triptych` and Triton's activation, beside numpy's own import; what Python needs to start is taken off."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module

from harness import Contender, Figure, Peer, at_most, probe, spread, take_turns, time_call

SECONDS_TARGET = 0.3
ACTIVATION_TARGET = 0.1
STATEMENTS = {
    "bare": "pass",
    "triptych": "import triptych",
    "used": "import triptych; triptych.cuda",
    "numpy": "import numpy",
}


def measure(quick: bool) -> Iterator[Figure]:
    """Medians of several processes that take turns."""
    contenders = {name: Contender(lambda code=code: _run(code)) for name, code in STATEMENTS.items()}
    seconds = take_turns(contenders, 2 if quick else 9)
    bare = statistics.median(seconds.pop("bare"))
    taken = {name: max(statistics.median(samples) - bare, 1e-6) for name, samples in seconds.items()}
    peer = Peer("import numpy", taken["numpy"])
    yield Figure(
        "import triptych", taken["triptych"], "s", peer, at_most(SECONDS_TARGET), seconds["triptych"],
        details={"bare_python_s": bare, **spread(seconds["triptych"])},
    )  # fmt: skip
    yield Figure("import triptych, and triptych.cuda used", taken["used"], "s", peer, samples=seconds["used"])
    # With byte code, as installers make it; the first process may have to write it.
    kept = {"PYTHONDONTWRITEBYTECODE": ""}
    found = [probe("import_time", "activate", kept)["seconds"][0] for _ in range(1 if quick else 10)][-9:]
    yield Figure(
        "tt.triton.activate(), after import triton and torch", statistics.median(found), "s", peer,
        at_most(ACTIVATION_TARGET), found,
    )  # fmt: skip


def activate() -> dict[str, list[float]]:
    """What it takes to import triptych and to switch Triton on, in a process that has Triton and torch."""
    for name in ("triton", "torch"):
        import_module(name)
    return {"seconds": [time_call(lambda: import_module("triptych").triton.activate())]}


def _run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)
