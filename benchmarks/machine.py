"""The machine that a run was taken on, how busy it was, and how fast its arithmetic is: to recognise noise by."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from harness import FOLDER, probe

PACKAGES = ("triptych", "numpy", "llvmlite", "nvidia-cuda-nvrtc", "triton", "torch", "numba")


def processor() -> str:
    """The processor's model as Linux names it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def cores() -> int:
    """Logical processors that this process may use."""
    return len(os.sched_getaffinity(0))


def physical_cores() -> int:
    """Physical cores behind them: two logical processors of one core share its arithmetic."""
    siblings: set[str] = set()
    for number in os.sched_getaffinity(0):
        path = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        siblings.add(path.read_text().strip() if path.exists() else str(number))
    return len(siblings)


def memory_bytes() -> int:
    """Bytes of memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def describe_machine() -> dict[str, str | int]:
    """What of the machine decides the figures."""
    return {
        "processor": processor(),
        "cores": cores(),
        "physical_cores": physical_cores(),
        "memory_bytes": memory_bytes(),
        "system": platform.platform(),
    }


def versions() -> dict[str, str]:
    """Python and the packages that matter; `not installed` where one is not."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def commit() -> str:
    """The commit that HEAD names, or `unknown` outside a checkout."""
    git = FOLDER.parent / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        reference = head.removeprefix("ref: ")
        return head if reference == head else (git / reference).read_text().strip()
    except OSError:
        return "unknown"


@dataclass(frozen=True, slots=True)
class Busyness:
    """Time of all processors since the machine started, in clock ticks, and the load averages of now."""

    ticks: int
    idle: int
    stolen: int
    """Ticks that the hypervisor gave to others."""
    own: float
    """Seconds of this process and the children that it waited for."""
    load: tuple[float, float, float]

    @classmethod
    def now(cls) -> Busyness:
        """As of now."""
        ticks = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        own = sum(os.times()[:4])
        return cls(sum(ticks), ticks[3] + ticks[4], ticks[7], own, os.getloadavg())


def busyness_between(before: Busyness, after: Busyness) -> dict[str, float]:
    """The load averages of one minute, and the share of processor time that others and the hypervisor took."""
    ticks = max(after.ticks - before.ticks, 1)
    busy = ticks - (after.idle - before.idle) - (after.stolen - before.stolen)
    own = (after.own - before.own) * os.sysconf("SC_CLK_TCK")
    return {
        "load_before": before.load[0],
        "load_after": after.load[0],
        "others_share": max(busy - own, 0.0) / ticks,
        "stolen_share": (after.stolen - before.stolen) / ticks,
    }


@dataclass(frozen=True, slots=True)
class Calibration:
    """numpy's own SGEMM, best of several, in GFLOP/s by the number of threads that BLAS may use."""

    by_threads: Mapping[int, float]

    @property
    def scaling(self) -> float:
        """How much faster all threads are than one: what any work on this machine can hope for."""
        return self.by_threads[max(self.by_threads)] / self.by_threads[1]


def calibrate(threads: int, *, quick: bool) -> Calibration:
    """numpy's SGEMM with 1 and with `threads` threads, each in a process of its own."""
    arguments = {"extent": 256 if quick else 1024, "rounds": 3 if quick else 12}
    found: dict[int, float] = {}
    for count in sorted({1, threads}):
        limits = {f"{library}_NUM_THREADS": str(count) for library in ("OPENBLAS", "OMP", "MKL")}
        found[count] = max(probe("peers.blas", "measure", limits, **arguments)["gflops"])
    return Calibration(found)
