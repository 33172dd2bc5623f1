"""What a program asks of the judge: the score of a candidate, judged by a pool of this process that stays warm."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock

from triptych.chips import ChipChoice, GpuChip, NeuronChip, load
from triptych.judge.candidate import Candidate, task
from triptych.judge.pool import Pool
from triptych.judge.scoring import Score
from triptych.operators import operator as _operator
from triptych.operators.operator import Operator

_lock = Lock()
_pool: Pool | None = None


def score(
    source: str | Path | Candidate,
    operator: str | Operator,
    *,
    sizes: str | Sequence[str] = (),
    dtype: str | None = None,
    chips: ChipChoice | Iterable[ChipChoice] = (),
    seed: int | None = None,
    format: str = "solution",
    baselines: bool = True,
    pool: Pool | None = None,
) -> Score:
    """Judges a candidate: its verdict, its reward and what they rest on.

    Args:
        source: a Python file's text, or the path of one.
        operator: what it must compute: an operator, or the name of one.
        sizes: names of the operator's sizes; its tiny ones where there are none.
        dtype: the name of the type T; the operator's first where it is not said.
        chips: whose rooflines: names, paths of TOML files or chips. A candidate is captured for each compile target
            that they have. The default chip of the machine that its kernels are for, where there are none.
        seed: of all inputs; drawn once the candidate has been captured, where it is not said.
        format: how the source is written: `solution`, `kernelbench` or `gpu_mode`.
        baselines: whether the reference kernel of the language is timed too, for speedups.
        pool: whose worker judges; one of this process, which stays warm, where it is not said.

    Raises:
        UnknownName: for an operator, a size, a type or a chip that there is not.
        SandboxError: where no sandbox can be started.
        OSError: where a path cannot be read.
    """
    if isinstance(source, str):
        source = Candidate(source, format=format)
    found = source if isinstance(source, Candidate) else Candidate.read(source, format)
    asked = (chips,) if isinstance(chips, str | os.PathLike | GpuChip | NeuronChip) else tuple(chips)
    judged = task(
        _operator(operator) if isinstance(operator, str) else operator,
        sizes=(sizes,) if isinstance(sizes, str) else sizes,
        dtype=dtype,
        chips=tuple(map(load, asked)),
        seed=seed,
    )
    return (pool or _warm_pool()).score(found, judged, baselines=baselines)


def reward(
    source: str | Path | Candidate, operator: str | Operator, *, seed: int | None = None, pool: Pool | None = None
) -> Score:
    """The same for a trainer, at default sizes on the default chip: `.reward` is in [0, 1], `.verdict` says why.

    It may be called from several threads; as many candidates are judged at a time as there are cores.

    Args:
        source: a Python file's text, or the path of one.
        operator: what it must compute: an operator, or the name of one.
        seed: of all inputs; drawn once the candidate has been captured, where it is not said.
        pool: whose worker judges; one of this process, which stays warm, where it is not said.

    Raises:
        UnknownName: for an operator that there is not.
        SandboxError: where no sandbox can be started.
        OSError: where a path cannot be read.
    """
    return score(source, operator, seed=seed, baselines=False, pool=pool)


def _warm_pool() -> Pool:
    global _pool
    with _lock:
        if _pool is None:
            _pool = Pool()
            atexit.register(_pool.close)
        return _pool


def _forget() -> None:
    """In a forked process: the pool is the other's."""
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_forget)
