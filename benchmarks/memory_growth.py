"""Private memory that a large launch takes beyond its caller's arrays."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import Figure, at_most, probe
from launches import kernel
from vec_add import THREADS, make_arrays

BYTES_TARGET = 300e6
_PERIOD_S = 0.002


def measure(quick: bool) -> Iterator[Figure]:
    """In a process of its own, whose first launch this is."""
    elements = 1 << 18 if quick else 1 << 24
    found = probe("memory_growth", "grow", elements=elements)
    before, after, most = found["private_bytes"]
    resident = found["peak_resident_bytes"][0]
    yield Figure(
        f"private memory that vec_add of {elements} elements takes, at its peak", (most - before) / 1e6, "MB",
        target=at_most(BYTES_TARGET / 1e6), samples=found["private_bytes"], sample_unit="bytes",
        details={"arrays_bytes": float(12 * elements), "before_bytes": before, "looks": found["looks"][0]},
    )  # fmt: skip
    yield Figure(
        "the same, resident memory: pages of libraries that it read count too", resident / 1e6, "MB",
        target=at_most(BYTES_TARGET / 1e6),
    )  # fmt: skip
    yield Figure("private memory kept after the launch", (after - before) / 1e6, "MB")


def private_bytes() -> int:
    """Private_Clean + Private_Dirty of this process: what would be free without it."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Private_"))


def _resident_bytes(field: str) -> int:
    """`VmRSS`, this process's resident memory now, or `VmHWM`, its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


@contextmanager
def _watched(looks: list[int]) -> Generator[None]:
    """Looks at the private memory all the time, from a thread of its own."""
    done = threading.Event()

    def look() -> None:
        while not done.wait(_PERIOD_S):
            looks.append(private_bytes())

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def grow(elements: int) -> dict[str, list[float]]:
    """Private bytes before the launch, after it and at the most seen, and what the peak of resident bytes grew by.

    The arrays are there before; code is made, or loaded from the cache, in the launch.
    """
    a, b, c = make_arrays(elements)
    launch = kernel("vec_add.cu", "vec_add")[-(-elements // THREADS), THREADS]
    looks: list[int] = []
    Path("/proc/self/clear_refs").write_text("5")  # the peak of resident memory starts anew
    before, resident = private_bytes(), _resident_bytes("VmRSS")
    with _watched(looks):
        launch(a, b, c, elements)
    after, peak = private_bytes(), _resident_bytes("VmHWM")
    most = max([*looks, before, after])
    return {
        "private_bytes": [before, after, most],
        "peak_resident_bytes": [max(peak - resident, 0)],
        "looks": [len(looks)],
    }
