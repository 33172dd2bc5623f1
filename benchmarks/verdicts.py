"""Verdicts an hour on two cores, and a worker's memory: candidates from vec_add to attention, in three languages.

Each candidate is new, its source, its programs and its inputs; then all come again, with other inputs. There is no
peer: others judge kernels on a device. Beside two workers on two cores stands one on one core.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path

from candidates import Kernel, kernels
from harness import BenchmarkError, Figure, Of, Peer, at_least, at_most, probe, spread
from triptych import judge

WORKERS = 2
NEW_TARGET, AGAIN_TARGET = 1200.0, 8000.0
"""Verdicts an hour."""
SCALING_TARGET = 1.8
BYTES_TARGET = 500e6
UNIT = "verdicts/h"
_PERIOD_S = 0.1
Work = tuple[judge.Candidate, judge.Task]


def measure(quick: bool) -> Iterator[Figure]:
    """In a process of its own, on as many cores as there are workers; starting the workers is not timed.

    The quick candidates are NKI's alone, for which no compiler starts.
    """
    rounds = 2 if quick else 4
    chosen = _chosen(quick)
    found = probe("verdicts", "judge_all", quick=quick, rounds=rounds)
    each, total = len(chosen), len(chosen) * rounds
    one, two, again = (
        3600 * number / found[f"{phase}_s"][0] for phase, number in (("one", each), ("two", total), ("again", total))
    )
    languages = {name: float(number * rounds) for name, number in Counter(one.language for one in chosen).items()}
    yield Figure(
        f"{total} new candidates, {WORKERS} workers", two, UNIT, target=at_least(NEW_TARGET),
        samples=found["two_each_s"], details=spread(found["two_each_s"]) | languages,
    )  # fmt: skip
    yield Figure(
        f"the same {total} again, on other inputs, {WORKERS} workers", again, UNIT, target=at_least(AGAIN_TARGET),
        samples=found["again_each_s"], details=spread(found["again_each_s"]),
    )  # fmt: skip
    yield Figure(
        f"new candidates, {WORKERS} workers over 1", two, UNIT, Peer("1 worker", one),
        at_least(SCALING_TARGET, Of.RATIO), found["one_each_s"],
        details=spread(found["one_each_s"]) | {"candidates_of_1_worker": float(each)},
    )  # fmt: skip
    yield Figure(
        "memory of a worker at its peak, with its share of the judge's own process",
        max(found["bytes"]) / WORKERS / 1e6, "MB", target=at_most(BYTES_TARGET / 1e6),
        samples=found["bytes"], sample_unit="bytes of all workers", details={"own_bytes": max(found["own_bytes"])},
    )  # fmt: skip


def _chosen(quick: bool) -> Sequence[Kernel]:
    return [one for one in kernels() if one.language == "nki"][:2] if quick else kernels()


def judge_all(quick: bool, rounds: int) -> dict[str, list[float]]:
    """Versions of all kernels: the first one at a time, `rounds` two at a time, those again, and one to be watched.

    Returns:
        Of each timed phase the seconds, altogether and of each verdict; and the memory that all processes, and this one
        alone, held at each look while two worked on what was new.
    """
    cores = sorted(os.sched_getaffinity(0))[:WORKERS]
    os.sched_setaffinity(0, cores)
    chosen = _chosen(quick)
    numbers = count()

    def new(chosen: Sequence[Kernel], versions: int = 1) -> list[Work]:
        return [(one.candidate(next(numbers)), one.task) for _ in range(versions) for one in chosen]

    first = {one.language: one for one in reversed(chosen)}.values()
    looks: list[int] = []
    own: list[int] = []
    with judge.Pool(WORKERS) as pool:
        for kernel in first:  # each worker's first of a language starts its compiler
            _at_once(pool, new([kernel], WORKERS))
        alone, together = new(chosen), new(chosen, rounds)
        _keep_to(cores[:1])
        one_s, one_each = _timed(lambda: [_judged(pool, work) for work in alone])
        _keep_to(cores)
        two_s, two_each = _timed(lambda: _at_once(pool, together))
        again_s, again_each = _timed(lambda: _at_once(pool, together))
        with _watched(looks, own):
            _at_once(pool, new(chosen))
    return {
        "one_s": [one_s], "one_each_s": one_each, "two_s": [two_s], "two_each_s": two_each,
        "again_s": [again_s], "again_each_s": again_each, "bytes": [*looks], "own_bytes": [*own],
    }  # fmt: skip


def _keep_to(cores: Sequence[int]) -> None:
    """Lets all threads of this process and of those below it run on these cores alone."""
    for process in (os.getpid(), *_below(os.getpid())):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)


def _timed(call: Callable[[], list[float]]) -> tuple[float, list[float]]:
    start = time.perf_counter()
    found = call()
    return time.perf_counter() - start, found


def _at_once(pool: judge.Pool, works: Sequence[Work]) -> list[float]:
    """As many at a time as the pool has workers; the seconds of each."""
    with ThreadPoolExecutor(pool.workers) as threads:
        return list(threads.map(partial(_judged, pool), works))


def _judged(pool: judge.Pool, work: Work) -> float:
    """The seconds to a verdict, which must be that it passed."""
    start = time.perf_counter()
    score = pool.score(*work)
    if score.reason is not None:
        raise BenchmarkError(f"{score.candidate}: {score.verdict.outcome.value}, {score.reason.message}")
    return time.perf_counter() - start


@contextmanager
def _watched(looks: list[int], own: list[int]) -> Generator[None]:
    """Looks at the memory of this process and all below it, from a thread of its own."""
    done = threading.Event()

    def look() -> None:
        while True:
            own.append(_bytes(os.getpid()))
            looks.append(own[-1] + sum(map(_bytes, _below(os.getpid()))))
            if done.wait(_PERIOD_S):
                return

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _below(process: int) -> Iterator[int]:
    """All processes that a process has started, and those that they have."""
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, _read(children).split()):
            yield child
            yield from _below(child)


def _bytes(process: int) -> int:
    """A process's share of resident memory: what several map counts in parts; 0 where it has ended.

    All of its resident memory, which is more, where only root may know the share.
    """
    try:
        lines = _read(Path(f"/proc/{process}/smaps_rollup")).splitlines()
    except PermissionError:
        lines = _read(Path(f"/proc/{process}/status")).splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(("Pss:", "VmRSS:")))


def _read(path: Path) -> str:
    """A file of /proc; empty where the process has ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
