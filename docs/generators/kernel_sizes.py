"""Every kernel at the named sizes of its operator: which are right there, by how much, and which sizes do not fit.

`python docs/record_kernel_sizes.py` runs them and writes `docs/data/kernel_sizes.json`; the page of kernels has a
table of it.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, cast

import numpy as np

import triptych as tt
from generators.attention_forward import ATTENTION_FORWARD
from triptych.core.errors import ArgumentError, NkiLimitError
from triptych.kernels import cuda, nki, triton
from triptych.kernels.catalogue import KERNELS, OwnKernel
from triptych.model.traffic import LEVELS
from triptych.operators import OPERATORS, Case, Operator, Size, draw_inputs, of_inputs
from triptych.operators.operator import Array, Arrays, Outputs, Values

Function: TypeAlias = Callable[..., Any]
Row: TypeAlias = dict[str, Any]
"""What was found of a kernel at a size."""
Call: TypeAlias = Callable[[Function, Sequence[Array], Values], object]
"""How a function is called on an operator's inputs."""

LANGUAGES: Mapping[str, Any] = {"CUDA C++": cuda, "Triton": triton, "NKI": nki}
_KERNELS = Path(str(cuda.__file__)).parents[1]
_REFERENCES = re.compile(r'from triptych\.kernels\.([\w.]+) import|"(\w+\.cuh?)"')
"""What a kernel's file needs of the others: modules, and files of CUDA C++."""
_DTYPES = {
    **dict.fromkeys(("matmul", "grouped_matmul", "attention", "attention_backward"), "f16"),
    "quantised_matmul": "f8e4m3fn",
}
"""T of operators that tensor cores carry out; else the operator's first."""
_OPERATORS = {"attention_forward": ATTENTION_FORWARD}
"""Operators of functions that return more than the operator that they are named after."""


def _as_they_are(function: Function, arrays: Sequence[Array], size: Values) -> object:
    return function(*arrays, **({"causal": True} if size.get("causal") else {}))


def _transposed(function: Function, arrays: Sequence[Array], size: Values) -> object:
    """A comes transposed."""
    a, b = arrays
    return function(np.ascontiguousarray(a.T), b)


def _in_pairs(function: Function, arrays: Sequence[Array], size: Values) -> object:
    """Two sequences of matrices; their products, one behind the other."""
    a, b, offsets = arrays
    rows = [a[first:last] for first, last in pairwise(offsets)]
    return np.concatenate(function(rows, list(b)))


CALLS: Mapping[str, Call] = {
    "triton.grouped_matmul": _in_pairs,
    **{f"nki.matmul_{tiling}": _transposed for tiling in ("tiled", "hoisted", "blocked", "fully_blocked")},
}
"""Kernels that take something else than the operator's inputs, one after the other."""


@dataclass(frozen=True, slots=True)
class Run:
    """A kernel's function at a size."""

    name: str
    """As it is found: `cuda.matmul_naive`."""
    language: str
    function: Function
    operator: Operator
    size: Size

    @property
    def dtype(self) -> str:
        """T."""
        return _DTYPES.get(self.operator.name, self.operator.dtypes[0])

    @property
    def least_bytes(self) -> int:
        """What every kernel moves at this size."""
        return self.operator.least_bytes(self.size.values, self.operator.dtype(self.dtype))

    @property
    def least_flops(self) -> int:
        """What every kernel computes at this size."""
        return self.operator.least_flops(self.size.values)

    @property
    def digest(self) -> str:
        """Of the kernel's sources and what they import of each other, of the size and T: a row of another is stale."""
        texts = [path.read_text(encoding="utf-8") for path in sorted(sources(self.name, self.function))]
        told = repr((texts, sorted(self.size.values.items()), self.dtype))
        return hashlib.sha256(told.encode()).hexdigest()[:12]


def runs() -> Iterator[Run]:
    """Every function of `triptych.kernels` that carries out an operator, at every size of that."""
    for language, package in LANGUAGES.items():
        for one in functions(package):
            if one.operator is not None:
                of = _OPERATORS.get(one.function, OPERATORS[one.operator])
                function = getattr(package, one.function)
                yield from (Run(one.place, language, function, of, size) for size in of.sizes)


def functions(package: ModuleType) -> list[OwnKernel]:
    """Those of a language, in the order in which it names them."""
    return [KERNELS[f"{package.__name__.rpartition('.')[2]}.{name}"] for name in package.__all__]


def sources(name: str, function: Function) -> set[Path]:
    """The files of `triptych.kernels` that a function is made of."""
    module = Path(inspect.getfile(getattr(function, "function", function)))
    own = module.with_name(f"{name.partition('.')[2]}.cu")
    waiting, found = [module, *([own] if own.exists() else [])], set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            for imported, included in _REFERENCES.findall(path.read_text(encoding="utf-8")):
                place = f"{imported.replace('.', '/')}.py"
                waiting.append(path.with_name(included) if included else _KERNELS / place)
    return found


def host() -> str:
    """This machine, as rows name it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{os.cpu_count()} cores, {memory / 2**30:.0f} GiB"


@lru_cache(maxsize=1)
def _inputs(operator: str, size: str, dtype: str) -> Arrays:
    of = OPERATORS[operator]
    return draw_inputs(of, size, dtype, of.distributions[0].name)


@lru_cache(maxsize=1)
def _case(name: str, operator: str, size: str, dtype: str) -> Case:
    """Kernels of an operator share it: results in float64 take longer than many a kernel."""
    of = _OPERATORS.get(name, OPERATORS[operator])
    inputs = _inputs(operator, size, dtype)
    return of_inputs(of, of.size(size).values, of.dtype(dtype), of.distributions[0].name, inputs)


def measure(run: Run) -> Row:
    """The largest error as a share of what is allowed, the bytes over the least, and the findings; or a refusal.

    Bytes are those that each launch touches at the level of DRAM, of HBM on NKI.
    """
    known: Row = {"dtype": run.dtype, "host": host(), "digest": run.digest}
    key = run.operator.name, run.size.name, run.dtype
    call = CALLS.get(run.name, _as_they_are)
    try:
        with tt.profile(chip=KERNELS[run.name].chip) as profile:
            result = call(run.function, list(_inputs(*key).values()), run.size.values)
    except (ArgumentError, NkiLimitError) as refused:
        return {**known, "refused": str(refused).splitlines()[0]}
    outputs: Outputs = tuple(map(np.asarray, cast("Any", result if isinstance(result, tuple) else (result,))))
    own = run.name.partition(".")[2]
    verdict = _case(own if own in _OPERATORS else "", *key).verdict(outputs)
    level = LEVELS[profile.launches[0].record.machine][0]
    moved = sum(level.bytes(launch.counters) for launch in profile.launches)
    return {
        **known,
        "error": float(f"{verdict.error:.3g}"),
        "bytes_over_least": float(f"{moved / run.least_bytes:.3g}"),
        "findings": len(profile.findings),
    }
