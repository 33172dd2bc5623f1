"""Runs AWS's public NKI samples and writes `docs/data/nki_samples.json`; then run docs/generate.py.

    python docs/record_nki_samples.py FOLDER [--target TARGET]

FOLDER holds what is no part of this repository, each where it is there:

- `nki-samples`: a clone of aws-neuron/nki-samples, whose kernels run beside the references of `SAMPLES` here, which
  are those of the samples' own comparisons;
- any other folder of `test_*.py`: tests of the reference of NKI (aws-neuron/aws-neuron-sdk, `general/nki/test` up to
  2.26, `nki/test` since), which bring their own comparisons.

Reasons that were written into the data stay with the tests that they belong to.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import sys
import unittest
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import triptych as tt
from triptych.languages.nki import nki_beta1

DATA = Path(__file__).resolve().parent / "data" / "nki_samples.json"
SAMPLES_FOLDER = "nki-samples"
TUTORIALS = "src/nki_samples/tutorials"
MOST_INSTRUCTIONS = 1 << 20

Array = NDArray[Any]
Inputs = Callable[[np.random.Generator], tuple[Array, ...]]


@dataclass(frozen=True, slots=True)
class Sample:
    """A kernel of the samples, what it is called with, and what it is to give."""

    file: str
    kernel: str
    arguments: Callable[[np.random.Generator], tuple[Any, ...]]
    expected: Callable[..., Array]
    tolerance: float = 1e-4
    """Of the largest difference, by the largest magnitude."""
    plain: bool = False
    """Whether the sample decorates the function where it calls it."""


def _ones_mamba(_: np.random.Generator) -> tuple[Array, ...]:
    batch, channels, length, states = 1, 256, 512, 16
    ones = [np.ones((batch, channels, length), np.float32) for _ in range(2)]
    rows = [np.ones((batch, states, length), np.float32) for _ in range(2)]
    return (*ones, -np.ones((channels, states), np.float32), *rows)


def _mamba(delta: Array, u: Array, a: Array, b: Array, c: Array) -> Array:
    state = np.zeros((*u.shape[:2], a.shape[1]))
    found = np.empty_like(u)
    for at in range(u.shape[2]):
        step = delta[:, :, at, None]
        state = np.exp(step * a) * state + step * u[:, :, at, None] * b[:, None, :, at]
        found[:, :, at] = (state * c[:, None, :, at]).sum(-1)
    return found


def _attention(q: Array, k: Array, v: Array) -> Array:
    scores = q.T.astype(np.float64) @ k
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True) @ v.T


def _attention_inputs(length: int) -> Inputs:
    return lambda random: tuple(random.uniform(-1, 1, (128, length)).astype(np.float32) for _ in range(3))


def _uniform(*shapes: Sequence[int], dtype: np.typing.DTypeLike = np.float32) -> Inputs:
    return lambda random: tuple([random.random(tuple(shape)).astype(dtype) for shape in shapes])


def _product(a_t: Array, b: Array) -> Array:
    return a_t.T.astype(np.float64) @ b.astype(np.float64)


def _pooled(x: Array, size: int) -> Array:
    count, height, width = x.shape
    return x.reshape(count, height // size, size, width // size, size).mean((2, 4))


def _transposed(x: Array, shape: tuple[int, int]) -> Array:
    return x.reshape(-1, *shape).transpose(0, 2, 1).reshape(x.shape)


def _largest(x: Array, size: int) -> Array:
    return np.lib.stride_tricks.sliding_window_view(x, (size, size)).max((2, 3))


def _doubled(x: Array) -> Array:
    """Each axis behind the second twice as long, by linear interpolation between the elements' middles."""
    found = x.astype(np.float64)
    for axis in range(2, x.ndim):
        found = np.moveaxis(np.tensordot(_interpolation(x.shape[axis]), found, (1, axis)), 0, axis)
    return found


def _interpolation(count: int) -> NDArray[np.float64]:
    """The weights of `count` elements in each of twice as many."""
    weights = np.zeros((2 * count, count))
    for row in range(2 * count):
        place = min(max((row + 0.5) / 2 - 0.5, 0.0), count - 1.0)
        low = int(place)
        weights[row, low] += 1 - (place - low)
        weights[row, min(low + 1, count - 1)] += place - low
    return weights


_PRODUCTS = f"{TUTORIALS}/matrix_multiplication/matrix_multiplication_nki_kernels.py"
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_ADDED = _uniform((512, 2048), (512, 2048))
_ADDITIONS = ("tensor_addition", "spmd_tensor_addition", "spmd_multiple_nc_tensor_addition")
_TILED = (
    "nki_matmul_tiled_",
    "nki_matmul_hoist_load_",
    "nki_matmul_block_free_dimension_",
    "nki_matmul_fully_optimized_",
)

SAMPLES: tuple[Sample, ...] = (
    *(
        Sample(f"{TUTORIALS}/tensor_addition/{file}_nki_kernels.py", kernel, _ADDED, np.add)
        for file, kernel in zip(
            _ADDITIONS, ("nki_tensor_add", "nki_tensor_add", "nki_tensor_add_nc2"), strict=True
        )
    ),
    Sample(
        f"{TUTORIALS}/average_pool2d/average_pool2d_nki_kernels.py", "tensor_avgpool_kernel",
        lambda _: (np.arange(72, dtype=np.float16).reshape(2, 6, 6), 2), _pooled,
    ),
    Sample(
        f"{TUTORIALS}/transpose2d/transpose2d_nki_kernels.py", "tensor_transpose2D_kernel_",
        lambda _: (np.arange(60, dtype=np.int8).reshape(5, 12), (3, 4)), _transposed,
    ),
    Sample(_PRODUCTS, "nki_matmul_basic_", _uniform((128, 64), (128, 512), dtype=_BFLOAT16), _product, 1e-2),
    *(
        Sample(_PRODUCTS, kernel, _uniform((1024, 4096), (1024, 2048), dtype=_BFLOAT16), _product, 1e-2)
        for kernel in _TILED
    ),
    *(
        Sample(f"{TUTORIALS}/fused_mamba/mamba_nki_kernels.py", f"mamba_{version}", _ones_mamba, _mamba)
        for version in ("v1", "v2", "v3")
    ),
    *(
        Sample(
            f"{TUTORIALS}/attention_fwd_performance/attention_kernels.py", f"attn_fwd_{version}",
            _attention_inputs(128 if version in ("v1", "v2") else 512), _attention, 2e-2,
        )
        for version in ("v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v8a", "v9", "v10", "v11")
    ),
    Sample("contributed/interpolate_bilinear_fwd.py", "interpolate_bilinear_2x_fwd", _uniform((1, 64, 64, 64)),
           _doubled),
    Sample("contributed/interpolate_trilinear_fwd.py", "interpolate_trilinear_2x_fwd", _uniform((1, 64, 11, 11, 11)),
           _doubled),
    Sample("contributed/matmul.py", "matmul", _uniform((1024, 1024), (1024, 2048), dtype=np.float16), _product, 1e-2,
           plain=True),
    Sample("contributed/maxpooling.py", "max_pooling_2d_stride_1", lambda random: (
        random.random((448, 448)).astype(np.float32), 3), _largest),
)  # fmt: skip


class Outcomes:
    """What passed and what failed of one suite."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.passed = 0
        self.failed: dict[str, str] = {}

    def note(self, name: str, error: BaseException | str | None) -> None:
        """A test's end: `error` is None where it passed."""
        if error is None:
            self.passed += 1
            return
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        self.failed[name] = text.strip().splitlines()[0][:300]


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with _stand_ins():
        spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _stand_ins() -> Generator[None]:
    """Samples import torch_xla for the device that they are compared with; nothing of it is called here."""
    names = ("torch_xla", "torch_xla.core", "torch_xla.core.xla_model")
    added = [name for name in names if name not in sys.modules]
    sys.modules.update({name: ModuleType(name) for name in added})
    try:
        yield
    finally:
        for name in added:
            del sys.modules[name]


def run_samples(folder: Path) -> Outcomes:
    """The kernels of the samples, each beside its reference."""
    outcomes = Outcomes()
    for sample in SAMPLES:
        name = f"{Path(sample.file).name}: {sample.kernel}"
        try:
            _compare(sample, folder)
        except Exception as error:
            outcomes.note(name, error)
        else:
            outcomes.note(name, None)
    return outcomes


def _compare(sample: Sample, folder: Path) -> None:
    kernel = getattr(_module(folder / sample.file), sample.kernel)
    if sample.plain:
        kernel = nki_beta1.jit(kernel)
    arguments = sample.arguments(np.random.default_rng(0))
    found = np.asarray(kernel(*arguments), np.float64)
    expected = np.asarray(sample.expected(*arguments), np.float64)
    if found.shape != expected.shape and found.T.shape == expected.shape:
        found = found.T  # attention: [d, queries], as the tutorial compares it
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert error <= sample.tolerance, f"the largest difference is {error:.2g} of the largest magnitude"


def run_tests(folder: Path) -> Outcomes:
    """The tests of a folder, a method of a `TestCase` each."""
    outcomes = Outcomes()
    for file in sorted(folder.glob("test_*.py")):
        try:
            module = _module(file)
        except Exception as error:
            outcomes.note(file.stem, error)
            continue
        for case in list(vars(module).values()):
            if isinstance(case, type) and issubclass(case, unittest.TestCase) and case is not unittest.TestCase:
                for test in unittest.defaultTestLoader.loadTestsFromTestCase(case):
                    _run_test(test, outcomes)
    return outcomes


def _run_test(test: unittest.TestCase | unittest.TestSuite, outcomes: Outcomes) -> None:
    result = unittest.TestResult()
    test.run(result)
    told = [trace for _, trace in (*result.errors, *result.failures)]
    errors = [line for line in "\n".join(told).splitlines() if "Error" in line and not line.startswith(" ")]
    name = str(test).partition(" ")[0]
    outcomes.note(name, None if not told else (errors or [told[0].strip().splitlines()[-1]])[0])


class Failure(TypedDict):
    """A test that did not pass: what it said, and why that is so."""

    error: str
    reason: str


class Suite(TypedDict):
    """What is kept of a folder."""

    source: str
    passed: int
    failed: dict[str, Failure]


def suite_of(name: str, outcomes: Outcomes, source: str = "") -> Suite:
    """A suite, with the source (unless it is given) and the reasons of the record before."""
    before = _recorded().get(name)
    known: Mapping[str, Failure] = {} if before is None else before["failed"]
    failed: dict[str, Failure] = {
        name: {"error": error, "reason": known[name]["reason"] if name in known else ""}
        for name, error in outcomes.failed.items()
    }
    known_source = "" if before is None else before["source"]
    return {"source": source or known_source, "passed": outcomes.passed, "failed": failed}


def _recorded() -> Mapping[str, Suite]:
    return json.loads(DATA.read_text(encoding="utf-8"))["suites"] if DATA.exists() else {}


def write_suites(target: str, suites: Mapping[str, Suite]) -> None:
    """Put the suites into the record, in the place of those of the same names."""
    text = json.dumps({"target": target, "suites": {**_recorded(), **suites}}, indent=1, ensure_ascii=False)
    DATA.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description="Records AWS's public NKI samples.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="trn2", help="the chip; trn2 unless named")
    options = parser.parse_args()
    tt.nki.activate()
    suites: dict[str, Suite] = {}
    for folder in sorted(one for one in options.folder.iterdir() if one.is_dir()):
        sys.path.insert(0, str(folder))
        with tt.profile(chip=options.target), tt.scope(trace_limit=MOST_INSTRUCTIONS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.redirect_stdout(io.StringIO()):
                outcomes = run_samples(folder) if folder.name == SAMPLES_FOLDER else run_tests(folder)
        sys.path.remove(str(folder))
        suites[folder.name] = suite_of(folder.name, outcomes)
        print(f"{folder.name}: {outcomes.passed} passed, {len(outcomes.failed)} failed")
    write_suites(options.target, suites)


if __name__ == "__main__":
    main()
