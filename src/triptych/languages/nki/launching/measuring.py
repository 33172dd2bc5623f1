"""`nki.benchmark`, `nki.profile`: a call is run, and its time on the chip in force is modelled, not measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from triptych.core.output import write_output
from triptych.execution.launch_report import LaunchReport
from triptych.execution.profile import profile as recorded
from triptych.languages.nki.launching.kernel import Kernel
from triptych.languages.nki.tracing.indexing import refuse
from triptych.neuron.isa.trace import BETA1, CURRENT

Function = Callable[..., object]
Decorator = Callable[[Function], "MeasuredKernel"]
PERCENTILES = (0, 1, 10, 25, 50, 90, 99, 100)
_FILES = frozenset({"save_neff_name", "save_trace_name", "artifacts_dir", "working_directory"})
_OPTIONS = frozenset({"additional_compile_opt", "warmup", "iters", "overwrite", "profile_nth"}) | _FILES


@dataclass(frozen=True, slots=True)
class Latency:
    """The modelled time of a launch: one number, which every percentile is, as nothing varies."""

    seconds: float

    def get_latency_percentile(self, percentile: int) -> float:
        """Microseconds, modelled.

        Raises:
            NkiError: for a percentile that AWS's result does not have either.
        """
        if percentile not in PERCENTILES:
            raise refuse(f"percentile {percentile!r}; there are {', '.join(map(str, PERCENTILES))}")
        return self.seconds * 1e6

    def __repr__(self) -> str:
        """Microseconds, and that they are modelled."""
        return f"Latency({self.seconds * 1e6:.2f} us, modelled)"


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """What a benchmarked kernel says of its last call."""

    nc_latency: Latency
    launch: LaunchReport
    """The launch: counters, findings, its place on the roofline."""


class MeasuredKernel(Kernel):
    """A kernel whose calls leave a `benchmark_result`."""

    def __init__(
        self, function: Function, generation: str, grid: tuple[int, ...] = (1,), *, files: tuple[str, ...] = ()
    ) -> None:
        """`files` are options that name files which only AWS's compiler makes."""
        super().__init__(function, generation, grid)
        self._files = files
        self._results: list[BenchmarkResult] = []

    @property
    def benchmark_result(self) -> BenchmarkResult:
        """Of the last call.

        Raises:
            NkiError: before the first one.
        """
        if not self._results:
            raise refuse(f"{self.name} was not called yet: there is no benchmark_result")
        return self._results[-1]

    def __getitem__(self, grid: object) -> MeasuredKernel:
        """The kernel over a grid; its results are those of the kernel without one too."""
        made = MeasuredKernel(self.function, self.generation, super().__getitem__(grid).grid, files=self._files)
        made._results = self._results
        return made

    def __call__(self, *args: object, **kwargs: object) -> Any:  # noqa: ANN401  # what the author's kernel returns
        """Run it, and print the modelled time."""
        with recorded() as profile:
            returned = super().__call__(*args, **kwargs)
        launch = profile.launches[-1]
        latency = Latency(launch.roofline.estimate_s)
        self._results.append(BenchmarkResult(latency, launch))
        ignored = "".join(f"{name}: triptych makes no NEFF and no NTFF\n" for name in self._files)
        time = f"{latency.seconds * 1e6:.2f} us on {launch.chip.title} (modelled, not measured)"
        write_output(f"{self.name}: {time}\n{ignored}")
        return returned


def _measured(generation: str, function: Function | None, options: Mapping[str, object]) -> MeasuredKernel | Decorator:
    unknown = sorted(set(options) - _OPTIONS)
    if unknown:
        raise refuse(f"it does not take {', '.join(unknown)}", f"options: {', '.join(sorted(_OPTIONS))}")
    files = tuple(sorted(_FILES & {name for name, value in options.items() if value is not None}))

    def make(actual: Function) -> MeasuredKernel:
        plain = actual.function if isinstance(actual, Kernel) else actual
        return MeasuredKernel(plain, generation, files=files)

    return make if function is None else make(function)


def benchmark(kernel: Function | None = None, **options: object) -> MeasuredKernel | Decorator:
    """A decorator: each call of the kernel also leaves `benchmark_result.nc_latency`, a modelled time."""
    return _measured(CURRENT, kernel, options)


def benchmark_beta1(kernel: Function | None = None, **options: object) -> MeasuredKernel | Decorator:
    """A decorator: each call of the kernel also leaves `benchmark_result.nc_latency`, a modelled time."""
    return _measured(BETA1, kernel, options)
