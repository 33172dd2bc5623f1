"""Runs the benchmarks and prints one table: `python benchmarks/run.py [NAME…] [--json FILE] [--quick]`."""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

import code_time
import compile_time
import divergence
import families
import import_time
import launch_overhead
import memory_growth
import nki_interpreters
import nki_kernels
import sgemm
import tensor_products
import vec_add
import verdicts
from harness import Benchmark, BenchmarkError, Figure, Of, Verdict
from machine import Busyness, busyness_between, commit, describe_machine, versions

SCHEMA = "triptych.benchmarks/1"
BENCHMARKS: Mapping[str, Benchmark] = {
    "import_time": import_time.measure,
    "launch_overhead": launch_overhead.measure,
    "compile_time": compile_time.measure,
    "code_time": code_time.measure,
    "memory_growth": memory_growth.measure,
    "divergence": divergence.measure,
    "families": families.measure,
    "vec_add": vec_add.measure,
    "sgemm": sgemm.measure,
    "tensor_products": tensor_products.measure,
    "nki": nki_kernels.measure,
    "nki_interpreters": nki_interpreters.measure,
    "verdicts": verdicts.measure,
}
STYLES = {Verdict.MET: "green", Verdict.MISSED: "red", Verdict.INFORMATIVE: "dim", Verdict.NOT_JUDGED: "dim"}


@dataclass(slots=True)
class Results:
    """What a run found: figures with the benchmark that each is of, and errors by benchmark."""

    quick: bool
    figures: list[tuple[str, Figure]] = field(default_factory=list[tuple[str, Figure]])
    failures: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def as_hoped(self) -> bool:
        """Whether nothing failed and no target was missed."""
        verdicts = (figure.judge(quick=self.quick) for _, figure in self.figures)
        return not self.failures and Verdict.MISSED not in verdicts


def take(names: Sequence[str], console: Console, *, quick: bool) -> Results:
    """Runs the benchmarks one after another; one that fails does not stop the others."""
    results = Results(quick)
    for name in names:
        with console.status(name):
            try:
                results.figures += [(name, figure) for figure in BENCHMARKS[name](quick)]
            except BenchmarkError as error:
                results.failures[name] = str(error)
            except Exception:
                results.failures[name] = traceback.format_exc()
    return results


def document(results: Results, busyness: Mapping[str, float]) -> dict[str, object]:
    """The run as JSON holds it."""
    return {
        "schema": SCHEMA,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "quick": results.quick,
        "machine": describe_machine(),
        "busyness": dict(busyness),
        "versions": versions(),
        "figures": [_as_json(name, figure, quick=results.quick) for name, figure in results.figures],
        "failures": results.failures,
    }


def _as_json(name: str, figure: Figure, *, quick: bool) -> dict[str, object]:
    target = figure.target
    return {
        "benchmark": name,
        "quantity": figure.quantity,
        "value": figure.value,
        "unit": figure.unit,
        "peer": None if figure.peer is None else asdict(figure.peer),
        "ratio": figure.ratio,
        "target": target and {"sense": target.sense.value, "bound": target.bound, "of": target.of.value},
        "verdict": figure.judge(quick=quick).value,
        "samples": list(figure.samples),
        "sample_unit": figure.sample_unit,
        "details": dict(figure.details),
    }


def table(results: Results) -> Table:
    """One row a figure."""
    rows = Table(show_edge=False, pad_edge=False)
    rows.add_column("benchmark", style="bold")
    for heading in ("what", "ours", "peer", "ratio", "target", "verdict"):
        rows.add_column(heading, justify="right" if heading in ("ours", "ratio", "target") else "left")
    before = ""
    for name, figure in results.figures:
        verdict = figure.judge(quick=results.quick)
        peer = "" if figure.peer is None else f"{quantity(figure.peer.value, figure.unit)} ({figure.peer.name})"
        ratio = "" if figure.ratio is None else f"{figure.ratio:.3g}×"
        rows.add_row(
            name if name != before else "", figure.quantity, quantity(figure.value, figure.unit), peer, ratio,
            _target(figure), f"[{STYLES[verdict]}]{verdict.value}[/]",
        )  # fmt: skip
        before = name
    for name, error in results.failures.items():
        rows.add_row(name, error.strip().splitlines()[-1], "", "", "", "", "[red]failed[/]")
    return rows


def _target(figure: Figure) -> str:
    target = figure.target
    if target is None:
        return ""
    bound = f"{target.bound:g}×" if target.of is Of.RATIO else quantity(target.bound, figure.unit)
    return f"{target.sense.value} {bound}"


PIPE_COLUMNS = 190
SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"))
UNSCALED = ("GFLOP/s", "MB", "µs", "verdicts/h")


def quantity(value: float, unit: str) -> str:
    """Three digits and the unit, with a prefix where the unit has none yet."""
    if unit in UNSCALED or value == 0:
        return f"{value:.3g} {unit}" if abs(value) < 1000 else f"{value:.0f} {unit}"
    scale, prefix = next((pair for pair in SCALES if abs(value) >= 0.9995 * pair[0]), SCALES[-1])
    return f"{value / scale:.3g} {prefix}{unit}"


def _console(*, stderr: bool) -> Console:
    """Into a file or a pipe goes a table of full width."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, width=None if stream.isatty() else PIPE_COLUMNS)


def busyness_line(machine: Mapping[str, object], busyness: Mapping[str, float]) -> str:
    """The machine, and whether anything else ran on it."""
    return (
        f"{machine['processor']}, {machine['cores']} cores ({machine['physical_cores']} physical);"
        f" load {busyness['load_before']:.2f} before, {busyness['load_after']:.2f} after;"
        f" others took {busyness['others_share']:.0%} of the processors' time, the hypervisor"
        f" {busyness['stolen_share']:.0%}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """0: no target was missed; 1: one was, or a benchmark failed; 2: usage."""
    parser = argparse.ArgumentParser(description="Speeds of triptych, beside its peers, with their targets.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all where none is named")
    parser.add_argument("--json", metavar="FILE", help="write JSON to FILE, or - for standard output")
    parser.add_argument("--quick", action="store_true", help="small sizes: whether everything runs; judges nothing")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark '{unknown[0]}'; there are: {', '.join(BENCHMARKS)}")
    console = _console(stderr=options.json == "-")
    before = Busyness.now()
    results = take(options.names or list(BENCHMARKS), console, quick=options.quick)
    busyness = busyness_between(before, Busyness.now())
    found = document(results, busyness)
    console.print(table(results))
    console.print(busyness_line(describe_machine(), busyness))
    for name, error in results.failures.items():
        console.print(f"\n{name} failed:\n{error}", markup=False, style="red")
    if options.json:
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        sys.stdout.write(text) if options.json == "-" else Path(options.json).write_text(text, encoding="utf-8")
    return 0 if results.as_hoped else 1


if __name__ == "__main__":
    sys.exit(main())
