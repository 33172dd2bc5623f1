"""Runs AWS's NKI library beside its own references and adds it to `docs/data/nki_samples.json`; then docs/generate.py.

    python docs/record_nki_library.py CLONE --record

CLONE is a clone of aws-neuron/nki-library, no part of this repository. Its integration tests bring inputs, references
and tolerances; what would compile and run a kernel on a device is replaced by triptych, as its own simulation mode
replaces it by AWS's simulator. Of each test function the `CASES` cases with the least product of whole-number
parameters run, in a process each with a time limit; cases that are to be refused are left out. Files of the clone that
cannot run as they were published are mended in place (`REPAIRS`).
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import importlib.abc
import importlib.machinery
import itertools
import math
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, cast
from unittest.mock import MagicMock

import ml_dtypes
import numpy as np
import pytest
from _pytest.runner import runtestprotocol
from numpy.typing import NDArray

import triptych as tt
from record_nki_samples import Outcomes, suite_of, write_suites
from triptych.languages.nki import nki
from triptych.languages.nki.launching.kernel import Kernel

SUITE = "nki-library"
SOURCE = "aws-neuron/nki-library, d2ad3a5"
FOLDERS = (
    "core/attention", "core/cumsum", "core/embeddings", "core/max", "core/mlp", "core/moe", "core/moe_block",
    "core/output_projection", "core/qkv", "core/rmsnorm", "core/router_topk", "core/subkernels", "core/topk",
    "core/utils", "experimental/benchmark", "experimental/collectives", "experimental/conv",
    "experimental/dynamic_shapes", "experimental/loss", "experimental/moe", "experimental/mxfp_subkernels",
    "experimental/subkernels", "experimental/transformer",
)  # fmt: skip
CASES = 1
MOST_TRIES = 6
"""Cases of a function that are looked at: some are skipped, or only to be refused."""
TARGETS = ("trn2", "trn3")
"""A test function runs for the first that it has a case for."""
SECONDS = 400
MOST_INSTRUCTIONS = 1 << 20
ABSENT = (
    "allpairspy", "aws_embedded_metrics", "boto3", "botocore", "fabric2", "neuronxcc.starfish", "nki.compiler",
    "pandas", "paramiko", "plotext", "pytest_html", "scipy", "test.utils.host_management", "test.utils.s3_utils",
    "test.utils.artifact_manager", "test.utils.sqs_emitter", "test.utils.test_orchestrator",
)  # fmt: skip
"""What the tests import and no kernel or reference uses."""

REPAIRS = (
    ("src/nkilib_src/nkilib/core/mlp/mlp.py", '    """\n\n        TKG mode', "\n        TKG mode"),
    (
        "test/integration/nkilib/experimental/subkernels/test_topk_reduce.py",
        "experimental.subkernels.topk", "experimental.collectives.topk",
    ),
    (
        "test/integration/nkilib/core/qkv/test_qkv_tkg.py",
        "    LazyGoldenGenerator,\n    Val", "    LazyGoldenGenerator,\n    Platforms,\n    Val",
    ),
    (
        "test/integration/nkilib/core/attention/test_gen_mask_tkg.py",
        'kernel_input["mask_out_hbm"]', 'kernel_input["mask_out_hbm.must_alias_input"]',
    ),
    *(
        (
            f"src/nkilib_src/nkilib/core/{name}.py", f"{before}{weights}.base_tensor",
            f'{before}getattr({weights}, "base_tensor", {weights})',
        )
        for name, before, weights in (
            ("moe/moe_tkg/gate_up_projection_mx", " ", "weight"), ("moe/moe_tkg/down_projection_mx", " ", "weight"),
            ("mlp/mlp_tkg/gate_up_projection_mx_shard_H", " ", "gate_up_weights"),
            ("moe/moe_tkg/selective_expert_mx_impl", "=", "params.down_proj_weights_tensor"),
            ("moe/moe_tkg/selective_expert_mx_impl", "(", "params.down_proj_weights_tensor"),
        )
    ),
    ("src/nkilib_src/nkilib/experimental/mxfp_subkernels/mxfp_load_utils.py", " nl.range(", " range("),
    (
        "src/nkilib_src/nkilib/core/qkv/qkv_cte.py", "from ..utils import stream_shuffle_broadcast\n",
        "from ..utils.stream_shuffle_broadcast import stream_shuffle_broadcast\n",
    ),
)  # fmt: skip
"""A file, text in it and what it is to be: a docstring that ends too early, a package that is not published, a name
that is not imported, a key that the kernel's inputs do not have, tensors of NKI asked for what only the library's views
have, a function that NKI does not have, and a module imported for its function."""

Array = NDArray[Any]
SCIPY: Mapping[str, Mapping[str, Callable[[Array], Array]]] = {
    "scipy.linalg": {"circulant": lambda column: np.stack([np.roll(column, at) for at in range(len(column))], 1)},
    "scipy.special": {
        "expit": lambda x: 1 / (1 + np.exp(-x)),
        "erf": lambda x: np.vectorize(math.erf, otypes=[np.asarray(x).dtype])(x),
    },
}
"""What references use of scipy."""
_NOTHING = "nothing was compared"


def _mock(name: str) -> MagicMock:
    return MagicMock(name=name)


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules that are absent: every name of theirs is a mock."""

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if any(name == one or name.startswith(f"{one}.") for one in ABSENT):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        module.__dict__["__getattr__"] = _mock
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is in it."""


_PACKED: Mapping[str, tuple[Any, int]] = {
    "float8_e5m2_x4": (ml_dtypes.float8_e5m2, 8),
    "float8_e4m3fn_x4": (ml_dtypes.float8_e4m3fn, 8),
    "float4_e2m1fn_x4": (ml_dtypes.float4_e2m1fn, 4),
}


def _packed_name(dtype: np.dtype[Any]) -> str:
    return dtype.names[0] if dtype.names else ""


def static_cast(array: Any, dtype: Any) -> Array:  # noqa: ANN401  # arrays of numpy, of any dtype
    """Numpy's conversion, which also packs four elements into one of a packed dtype and unpacks them."""
    array, kind = np.asarray(array), np.dtype(dtype)
    if array.dtype == kind:
        return array
    if _packed_name(array.dtype):
        element, bits = _PACKED[_packed_name(array.dtype)]
        raw = array.view(np.uint32 if bits == 8 else np.uint16).astype(np.uint32)
        parts = (raw[..., None] >> np.arange(4, dtype=np.uint32) * bits & (1 << bits) - 1).astype(np.uint8)
        wide = parts.view(element).astype(np.float32)
        return wide.reshape(*array.shape[:-1], -1).astype(kind)
    if _packed_name(kind):
        element, bits = _PACKED[_packed_name(kind)]
        parts = array.astype(np.float32).astype(element).view(np.uint8).reshape(*array.shape[:-1], -1, 4)
        raw = (parts.astype(np.uint32) << np.arange(4, dtype=np.uint32) * bits).sum(-1, dtype=np.uint32)
        return raw.astype(np.uint32 if bits == 8 else np.uint16).view(kind)
    return array.astype(kind)


def _itemsize(dtype: np.typing.DTypeLike) -> int:
    return np.dtype(dtype).itemsize


def _is_float(dtype: np.typing.DTypeLike) -> bool:
    return np.dtype(dtype).kind in "fV"


def _neuron_dtypes() -> ModuleType:
    """What the tests use of AWS's package of numpy dtypes, which is not public."""
    module = ModuleType("neuron_dtypes")
    names = ("bfloat16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2", *_PACKED)
    module.__dict__.update({name: getattr(nki.language, name) for name in names})
    module.__dict__.update(
        static_cast=static_cast,
        finfo=ml_dtypes.finfo,
        sizeinbytes=_itemsize,
        is_float_type=_is_float,
    )
    return module


class Orchestrator:
    """In the place of what compiles kernels, sends them to a device and compares the results."""

    compared = False
    """Whether a result was held against a reference."""
    unreferenced = False
    """Whether the test has a kernel without a reference."""

    def __init__(self, *_: object, **__: object) -> None:
        """Of the settings of the run nothing matters here."""
        self.trace_mode = MagicMock(name="trace_mode")

    def execute(self, kernel_under_test: Any) -> None:  # noqa: ANN401  # the library's KernelArgs
        """Run the kernel on triptych, and compare as the library does."""
        asked = kernel_under_test
        golden = asked.validation_args.golden_output if asked.validation_args is not None else None
        if golden is None or getattr(golden, "lazy_golden_generator", golden) is None:
            Orchestrator.unreferenced = True
            return
        ranks = asked.inference_args.collective_ranks
        inputs = [_inputs(asked.kernel_input, rank) for rank in range(ranks)]
        found = _results(asked, inputs, ranks)
        per_rank = hasattr(golden, "for_rank")
        for rank in range(ranks if per_rank else 1):
            expected = golden.for_rank(rank) if per_rank else getattr(golden, "golden", golden)
            assert len(found[rank]) >= len(expected), f"{len(found[rank])} results, {len(expected)} expected"
            names = list(getattr(golden, "output_ndarray", expected))  # in the order in which the kernel returns them
            for name, value in zip(names, found[rank], strict=False):
                if name in expected:
                    label = f"rank {rank}: {name}" if ranks > 1 else name
                    _compare(label, value, expected[name], asked.validation_args)


def _inputs(given: Any, rank: int) -> dict[str, Any]:  # noqa: ANN401  # a dict or the library's generator
    named: Mapping[str, Any] = given.for_rank(rank) if hasattr(given, "for_rank") else given or {}
    return {name.removesuffix(".must_alias_input"): _given(value) for name, value in named.items()}


def _given(value: Any) -> Any:  # noqa: ANN401  # any argument of a kernel
    """A tuple for a list, which kernels do not take; arrays as they lie on a device, without strides."""
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return array if array.flags.c_contiguous else array.copy(order="C")
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def _results(
    asked: Any,  # noqa: ANN401  # the library's KernelArgs
    inputs: list[dict[str, Any]],
    ranks: int,
) -> list[list[Array]]:
    """What each rank returns."""
    function = asked.kernel_func
    kernel = function if isinstance(function, Kernel) else cast("Kernel", nki.jit(function))
    kernel = kernel[asked.compiler_input.logical_nc_config] if ranks == 1 else kernel.on_ranks(ranks)
    kernel.writes_arguments = True  # some return what they were given
    if ranks == 1:
        return [_listed(kernel(**inputs[0]))]
    stacked = {
        name: np.stack([one[name] for one in inputs]) if isinstance(value, np.ndarray) else value
        for name, value in inputs[0].items()
    }
    together = _listed(kernel(**stacked))
    return [[one[rank] for one in together] for rank in range(ranks)]


def _listed(returned: object) -> list[Array]:
    if returned is None:
        return []
    many = cast("Sequence[Array]", returned) if isinstance(returned, list | tuple) else [cast("Array", returned)]
    return [np.asarray(one) for one in many]


def _compare(
    name: str,
    value: Array,
    expected: Any,  # noqa: ANN401  # an array, or the library's own comparison
    bounds: Any,  # noqa: ANN401  # the library's ValidationArgs
) -> None:
    """As the library's validator: its own where the test has one, else the bounds of the test."""
    Orchestrator.compared = True
    if hasattr(expected, "validator"):
        raw = np.ascontiguousarray(value.astype(expected.dtype)).reshape(-1).view(np.uint8)
        assert expected.validator(None).validate(raw), f"{name}: the test's own comparison fails"
        return
    if value.dtype.names is not None and expected.dtype.names is None and value.itemsize == expected.itemsize:
        value = value.view(expected.dtype)  # four numbers as one, told by their bits
    found, wanted = (static_cast(one, np.float32) for one in (value, expected))
    if found.shape != wanted.shape and found.size == wanted.size:
        found = found.reshape(wanted.shape)
    assert found.shape == wanted.shape, f"{name}: the shape {found.shape}, {wanted.shape} expected"
    most = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
    allowed = bounds.absolute_accuracy + bounds.relative_accuracy * most
    with np.errstate(invalid="ignore"):
        error = np.abs(found.astype(np.float64) - wanted)
        wrong = np.count_nonzero(~(error <= allowed) & (found != wanted))
    if wrong:
        raise AssertionError(
            f"{name}: {wrong} of {wanted.size} elements differ, by up to {error.max():.2g}; {allowed:.2g} is allowed"
        )


def _numbers(value: object) -> Iterator[int]:
    """The whole numbers above 1 in a case's parameters."""
    if isinstance(value, bool | enum.Enum | str | type) or value is None:
        return
    if isinstance(value, int):
        if value > 1:
            yield value
    elif isinstance(value, Mapping):
        for one in cast("Mapping[str, object]", value).values():
            yield from _numbers(one)
    elif isinstance(value, Sequence):
        for one in cast("Sequence[object]", value):
            yield from _numbers(one)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _numbers(getattr(value, field.name))


def _is_negative(params: Mapping[str, Any]) -> bool:
    return any(
        getattr(one, "is_negative_test_case", False) or (name.startswith("is_negative") and bool(one))
        for name, one in params.items()
    )


class Recorder:
    """The plugin of pytest that chooses cases and runs each in a process of its own."""

    def __init__(self, options: argparse.Namespace, target: str, done: set[str]) -> None:
        """`done`: test functions that another target has run."""
        self.target, self.done = target, done
        self.only, self.seconds, self.cases = options.only, options.seconds, options.cases
        self.workers = options.workers
        self.outcomes = {folder: Outcomes() for folder in options.folders}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the cases that have a reference, the smallest of each function first."""
        groups: dict[str, list[tuple[float, pytest.Item]]] = {}
        for item in items:
            params: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
            wanted = self.only in item.nodeid and "test_manager" in getattr(item, "fixturenames", ())
            if wanted and not _is_negative(params) and _function(item) not in self.done:
                size = sum(math.log(number) for number in _numbers(params))
                groups.setdefault(_function(item), []).append((size, item))
        items[:] = [item for cases in groups.values() for _, item in sorted(cases, key=lambda case: case[0])]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the first cases of each function that are not skipped, `workers` functions at a time."""
        functions = [(function, list(cases)) for function, cases in itertools.groupby(session.items, _function)]
        with ThreadPoolExecutor(self.workers) as pool:
            for ended in [pool.submit(self._run_function, function, cases) for function, cases in functions]:
                ended.result()
        return True

    def _run_function(self, function: str, cases: Sequence[pytest.Item]) -> None:
        compared = 0
        for item in cases[:MOST_TRIES]:
            start = time.monotonic()
            error = self._run(item)
            if error == _NOTHING:
                continue
            name = item.nodeid.removeprefix("integration/nkilib/")
            outcomes = next(outcomes for folder, outcomes in self.outcomes.items() if name.startswith(f"{folder}/"))
            outcomes.note(name if self.target == TARGETS[0] else f"{name} ({self.target})", error)
            self.done.add(function)
            took = time.monotonic() - start
            print(f"{'right' if error is None else 'NOT'} {took:.0f} s {name} {error or ''}\n", end="", flush=True)
            compared += 1
            if compared == self.cases:
                return

    def _run(self, item: pytest.Item) -> str | None:
        """What is wrong, or None."""
        receive, send = multiprocessing.Pipe(duplex=False)
        child = os.fork()
        if child == 0:
            try:
                send.send(self._report(item))
            finally:
                os._exit(0)
        send.close()
        try:
            if not receive.poll(self.seconds):
                os.kill(child, signal.SIGKILL)
                return f"more than {self.seconds:.0f} s"
            return receive.recv()
        except EOFError:
            return "the process ended"
        finally:
            os.waitpid(child, 0)

    def _report(self, item: pytest.Item) -> str | None:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        details = Path(os.environ.get("NKI_LIBRARY_DETAILS", os.devnull))
        with tt.profile(chip=self.target), tt.scope(trace_limit=MOST_INSTRUCTIONS):
            reports = runtestprotocol(item, nextitem=None, log=False)
        if Orchestrator.unreferenced and not Orchestrator.compared:
            return _NOTHING
        for report in reports:
            if report.failed:
                with details.open("a", encoding="utf-8") as file:
                    file.write(f"\n=== {item.nodeid}\n{report.longreprtext}\n")
                told = getattr(report.longrepr, "reprcrash", None)
                return told.message if told is not None else report.longreprtext.strip().splitlines()[-1]
        return None if Orchestrator.compared else _NOTHING


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _activate(clone: Path) -> None:
    """Let the library find triptych, its tests and the stand-ins; mend what the published commit has broken."""
    for name, broken, whole in REPAIRS:
        file = clone / name
        text = file.read_text(encoding="utf-8")
        if broken not in text and whole not in text:
            raise SystemExit(f"{file}: this commit has neither {broken!r} nor {whole!r}")
        file.write_text(text.replace(broken, whole), encoding="utf-8")
    tt.nki.activate()
    dtypes = _neuron_dtypes()
    stand_ins = _StandIns()
    sys.meta_path.append(stand_ins)
    for name in ABSENT:
        sys.modules[name] = stand_ins.create_module(importlib.machinery.ModuleSpec(name, stand_ins, is_package=True))
        sys.modules[name].__path__ = []
    sys.modules["test.utils.test_orchestrator"].__dict__["Orchestrator"] = Orchestrator
    sys.modules |= {"neuron_dtypes": dtypes, "neuronxcc.starfish.support.dtype": dtypes}
    for name, functions in SCIPY.items():
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__dict__.update(functions)
    sys.path[:0] = [str(clone), str(clone / "src")]


def _run_target(options: argparse.Namespace, target: str, done: set[str]) -> Mapping[str, Outcomes]:
    """The outcomes of each folder."""
    recorder = Recorder(options, target, done)
    with tempfile.TemporaryDirectory() as written:
        arguments = [
            *(f"test/integration/nkilib/{folder}" for folder in options.folders),
            "-s", "-q", "-n0", "-p", "no:cacheprovider", "-W", "ignore",
            "--ignore-glob=*model_config.py", "--platform-target", target, "--output-directory", written,
            f"--override-ini=artifacts_dir={written}",
        ]  # fmt: skip
        pytest.main(arguments, plugins=[recorder])
    return recorder.outcomes


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description="Records AWS's NKI library.")
    parser.add_argument("clone", type=Path)
    parser.add_argument("folders", nargs="*", default=FOLDERS, help="of test/integration/nkilib; all unless named")
    parser.add_argument("--only", default="", help="part of the names of the tests that run")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each case")
    parser.add_argument("--cases", type=int, default=CASES, help="of each test function")
    parser.add_argument("--workers", type=int, default=1, help="test functions at a time")
    parser.add_argument("--record", action="store_true", help="write docs/data/nki_samples.json")
    options = parser.parse_args()
    _activate(options.clone.resolve())
    os.chdir(options.clone)
    done: set[str] = set()
    found = [_run_target(options, target, done) for target in TARGETS]
    for folder in options.folders:
        outcomes = Outcomes()
        for one in found:
            outcomes.passed += one[folder].passed
            outcomes.failed |= one[folder].failed
        name = f"{SUITE} {folder}"
        print(f"{name}: {outcomes.passed} passed, {len(outcomes.failed)} failed", flush=True)
        if options.record:
            write_suites(TARGETS[0], {name: suite_of(name, outcomes, SOURCE)})


if __name__ == "__main__":
    main()
