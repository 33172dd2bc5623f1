"""`triton.testing.perf_report`: its figures say that they are modelled, and a setting bounds how many there are."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from triptych.core.settings import settings
from triptych.languages.triton.internals import warn_at_launch


def make_run_of_report(run: Callable[..., Any]) -> Callable[..., Any]:
    """`triton.testing.Mark.run`, which measures each benchmark (public, 3.6 to 3.9) and labels its y axis."""

    def run_modelled(self: Any, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401  as Triton's own
        report = copy.copy(self)
        several = isinstance(self.benchmarks, list | tuple)
        report.benchmarks = [*map(modelled, self.benchmarks)] if several else modelled(self.benchmarks)
        return run(report, *arguments, **keywords)

    return run_modelled


def modelled(benchmark: Any) -> Any:  # noqa: ANN401  triton's Benchmark
    """A copy of a `triton.testing.Benchmark` that is labelled, and cut to what the settings want."""
    cut = copy.copy(benchmark)
    cut.ylabel = f"{benchmark.ylabel}, modelled" if benchmark.ylabel else "modelled"
    most, values = settings().benchmark_points, list(benchmark.x_vals)
    if most is not None and most < len(values):
        cut.x_vals = values[:most]
        warn_at_launch(
            f"{benchmark.plot_name or 'perf_report'}: {most} of {len(values)} points of the x axis are measured"
            " (TRIPTYCH_BENCHMARK_POINTS)"
        )
    return cut
