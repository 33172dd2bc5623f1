"""Kernels at the named sizes of their operators: which are right there, by how much, and which sizes do not fit.

`python docs/record_kernel_sizes.py` runs them and writes `docs/data/kernel_sizes.json`; the page of kernels has a
table of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

import triptych as tt
from triptych.core.errors import ArgumentError, NkiLimitError
from triptych.kernels import cuda, nki, triton
from triptych.model.traffic import LEVELS
from triptych.operators import OPERATORS, Operator, Size, case

MOST_BYTES, MOST_FLOPS = 2_200_000_000, 1_000_000_000_000
"""A size fits where its least bytes (of T) and its least FLOPs are no more: with 16 cores it takes up to 90 seconds."""
LANGUAGES: Mapping[str, Any] = {"CUDA C++": cuda, "Triton": triton, "NKI": nki}
_BEST: Mapping[str, Mapping[str, str]] = {
    "matmul": {"CUDA C++": "matmul_mma"},
    "attention": {"CUDA C++": "attention_mma"},
}
"""The function of an operator's ladder that is run; else the one of the operator's name."""
_DTYPES = {"matmul": "f16", "grouped_matmul": "f16", "attention": "f16", "quantised_matmul": "f8e4m3fn"}
"""T of operators that tensor cores carry out; else the operator's first."""
_OTHERS = {"attention_backward", "grouped_matmul"}
"""Operators whose functions take something else than the operator's inputs."""
_CHIPS = {"quantised_matmul": "trn3"}
"""The first NeuronCore that has T."""


@dataclass(frozen=True, slots=True)
class Run:
    """A function at a size."""

    operator: Operator
    size: Size
    dtype: str
    language: str
    function: Callable[..., Any]
    name: str

    @property
    def fits(self) -> bool:
        """Whether it is run."""
        return self.least_bytes <= MOST_BYTES and self.operator.least_flops(self.size.values) <= MOST_FLOPS

    @property
    def least_bytes(self) -> int:
        """What every kernel moves at this size."""
        return self.operator.least_bytes(self.size.values, self.operator.dtype(self.dtype))


def runs() -> Iterator[Run]:
    """Every function of a language that carries out an operator, at every size of that."""
    for name, operator in OPERATORS.items():
        dtype = _DTYPES.get(name, operator.dtypes[0])
        for size in operator.sizes:
            for language, package in LANGUAGES.items():
                function = _BEST.get(name, {}).get(language, name)
                if function in package.__all__ and name not in _OTHERS:
                    yield Run(operator, size, dtype, language, getattr(package, function), function)


def measure(run: Run) -> dict[str, Any]:
    """The largest error as a share of what is allowed, the bytes over the least, and the findings; or a refusal.

    Bytes are those that each launch touches at the level of DRAM, of HBM on NKI.
    """
    one = case(run.operator, run.size.name, run.dtype, run.operator.distributions[0].name)
    options = {"causal": True} if run.size.values.get("causal") else {}
    try:
        with tt.profile(chip=_CHIPS.get(run.name, "trn2") if run.language == "NKI" else "h100") as profile:
            result = run.function(*one.inputs.values(), **options)
    except (ArgumentError, NkiLimitError) as refused:
        return {"refused": str(refused).splitlines()[0]}
    outputs = cast("tuple[Any, ...]", result if isinstance(result, tuple) else (result,))
    verdict = one.verdict(tuple(np.asarray(array) for array in outputs))
    level = LEVELS[profile.launches[0].record.machine][0]
    moved = sum(level.bytes(launch.counters) for launch in profile.launches)
    return {
        "error": float(f"{verdict.error:.3g}"),
        "bytes_over_least": float(f"{moved / run.least_bytes:.3g}"),
        "findings": len(profile.findings),
    }
