"""Records how long triptych's kernels take on the GPU of this machine: needs the driver and triptych's plans.

python benchmarks/hardware/record_times.py BUNDLE.npz OUTPUT.json [--seconds 80] [--dry]

`capture_times.py` writes the bundle: what is launched is the very programs whose work triptych counts. A case is one
call of a function, all its launches one behind the other. It is timed in two ways, in seconds:

- `cold`: events around a call whose arrays are in DRAM: before each, 256 MiB of zeros were read, four times the L2, so
  that its lines are clean and not the call's. What an empty kernel takes between the same events stands among the
  cases.
- `warm`: one of many calls in a graph, one behind the other, with whatever L2 keeps.

Cases run in a process of their own, which is started anew behind one that stopped the device or hung. The output is
written behind each case, and ends with what the seconds allow. `--dry` walks through all of it without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests" / "hardware")]

from device import DriverError
from time_inputs import Array, digest_of
from timing_device import HELPERS, Call, TimingDevice

from triptych.core.serialise import unpack

PATIENCE_S = 20
"""For one case; the first of a process has the start of that too."""
LEAST_COLD, MOST_COLD, COLD_S = 20, 40, 0.4
"""Cold calls: as many as the seconds allow, and at least so many."""
WARM_CALLS, WARM_S, WARM_GRAPHS = 50, 0.004, 5
"""Calls of a graph, at most; the seconds that it is to take; and how often it is launched."""


def _spread(seconds: Sequence[float]) -> dict[str, Any]:
    """The quartiles, the ends and the number of times."""
    first, median, third = statistics.quantiles(seconds, n=4, method="inclusive")
    ends = {"least": min(seconds), "most": max(seconds), "count": len(seconds)}
    return {"median": median, "first_quartile": first, "third_quartile": third, **ends}


def measure(device: TimingDevice, call: Call) -> dict[str, Any]:
    """The times of a call, and how its kernels fit the device."""
    device.time_cold(call)  # the first call of a kernel loads it
    once = device.time_cold(call)
    count = round(min(max(COLD_S / max(once, 1e-6), LEAST_COLD), MOST_COLD))
    cold = [device.time_cold(call) for _ in range(count)]
    state = device.state()
    repeats = round(min(max(WARM_S / max(statistics.median(cold), 1e-6), 1), WARM_CALLS))
    try:
        warm = _spread(device.time_graph(call, repeats, WARM_GRAPHS)) | {"calls": repeats}
    except DriverError as error:
        warm = {"failed": str(error)}
    return {"cold": _spread(cold), "warm": warm, "state": state}


def _child(bundle: Path, first: int, *, dry: bool) -> None:
    """Measures cases from one on; each is a line on standard output."""
    data = np.load(bundle)
    device = TimingDevice(dry=dry)
    helpers = device.helpers(data["cubin:helpers"].tobytes())
    cases = json.loads(str(data["cases"]))
    for number in range(first, len(helpers) + len(cases)):
        if number < len(helpers):
            name, call = list(helpers.items())[number]
            row: dict[str, Any] = {"case": name, "launches": call.launches}
            _say(row | measure(device, call))
            continue
        case = cases[number - len(helpers)]
        row = {"case": case["name"], "kernel": case["kernel"], "dtype": case["dtype"], "size": case["size"]}
        plan = unpack(data[f"plan:{case['name']}"].tobytes())
        inputs = [Array(one["name"], one["dtype"], tuple(one["shape"]), one["below"]) for one in case["inputs"]]
        try:
            with device.prepared(plan, inputs, lambda text: data[f"cubin:{digest_of(text)}"].tobytes()) as call:
                _say(row | {"launches": call.launches} | measure(device, call))
        except DriverError as error:
            if device.status("cuCtxSynchronize"):
                raise
            _say(row | {"failed": str(error)})


def _say(row: Mapping[str, Any]) -> None:
    print(json.dumps(row), flush=True)


def _told(query: str) -> list[str]:
    """What nvidia-smi says of the first device: names, then values."""
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()[:2]


class _Lines:
    """The lines of a child, each waited for no longer than it may take."""

    def __init__(self, command: Sequence[str], errors: Path) -> None:
        self._errors = errors
        with errors.open("w") as told:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=told)
        assert self._process.stdout
        self._file = self._process.stdout.fileno()
        self._rest = b""

    def next(self, seconds: float) -> str | None:
        """The next line; None where the child ended, or took too long."""
        end = time.monotonic() + seconds
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._file], [], [], max(end - time.monotonic(), 0))
            got = os.read(self._file, 1 << 16) if ready else b""
            if not got:
                return None
            self._rest += got
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def end(self) -> str:
        """Ends the child; its last words."""
        running = self._process.poll() is None
        time.sleep(0.2 if running else 0)
        hung = self._process.poll() is None
        self._process.kill()
        self._process.wait()
        said = self._errors.read_text().strip().splitlines()
        return "took too long" if hung else (said or [f"exit status {self._process.returncode}"])[-1]


def _record(bundle: Path, names: Sequence[str], seconds: float, write: Callable[[list[Any]], None], dry: bool) -> None:
    """Measures all, and writes behind each."""
    end = time.monotonic() + seconds
    rows: list[Any] = []
    write(rows)
    while len(rows) < len(names) and time.monotonic() < end:
        command = [sys.executable, __file__, str(bundle), "-", "--child", str(len(rows)), *(["--dry"] if dry else [])]
        lines = _Lines(command, bundle.with_suffix(".errors"))
        while len(rows) < len(names):
            line = lines.next(min(PATIENCE_S, max(end - time.monotonic(), 0)))
            if line is None:
                break
            rows.append(json.loads(line))
            write(rows)
        said = lines.end()
        if len(rows) < len(names):
            late = time.monotonic() >= end
            rows.append({"case": names[len(rows)], "failed": "no time was left" if late else said})
            write(rows)


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seconds", type=float, default=80)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--child", type=int)
    asked = parser.parse_args()
    if asked.child is not None:
        _child(asked.bundle, asked.child, dry=asked.dry)
        return
    data = np.load(asked.bundle)
    names = [*HELPERS, *(case["name"] for case in json.loads(str(data["cases"])))]
    query = "name,driver_version,clocks.max.sm,clocks.max.mem,clocks.sm,clocks.mem,power.limit,persistence_mode"
    about = {
        "device": "none" if asked.dry else _told(query),
        "date": date.today().isoformat(),
        "assemblers": json.loads(str(data["assemblers"])),
        "cold": "events around one call; 256 MiB of zeros were read before, the L2 holds none of its arrays",
        "warm": "calls in a graph, one behind the other, over their number",
        "unit": "s",
    }

    def write(rows: list[Any]) -> None:
        """All so far; what was there stays until it is there."""
        fresh = asked.output.with_suffix(".new")
        fresh.write_text(json.dumps({**about, "cases": rows}, indent=1) + "\n")
        fresh.replace(asked.output)

    _record(asked.bundle, names, asked.seconds, write, asked.dry)
    rows = json.loads(asked.output.read_text())["cases"]
    failed = [row for row in rows if "failed" in row]
    print(f"{len(rows) - len(failed)} of {len(names)} cases measured")
    for row in failed:
        print(f"{row['case']}: {row['failed']}"[:200])


if __name__ == "__main__":
    main()
