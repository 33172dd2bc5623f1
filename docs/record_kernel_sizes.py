"""Runs every kernel at the named sizes and writes `docs/data/kernel_sizes.json`; then run docs/generate.py.

The large ones take long, so rows are kept: a run that was ended goes on where it was, and only kernels whose sources
changed are run again. Small sizes come first. Other machines may run some, with `--to`, and `--take` takes their rows.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

from generators.kernel_sizes import Row, Run, measure, runs

DATA = Path(__file__).resolve().parent / "data" / "kernel_sizes.json"
_BYTES_WEIGHT = 100
"""FLOPs that take as long as a byte, roughly: for the order alone."""


def cost(run: Run) -> tuple[int, str]:
    """What a run is ordered by: kernels of one size follow each other, and share its results in float64."""
    return run.least_flops + _BYTES_WEIGHT * run.least_bytes, run.operator.name


def wanted(run: Run, patterns: Sequence[str]) -> bool:
    """Whether it was asked for."""
    return any(fnmatch(f"{run.name}/{run.size.name}", pattern) for pattern in patterns or ["*"])


def is_current(row: Row | None, run: Run) -> bool:
    """Whether a row is of the kernel as it is."""
    return row is not None and row["digest"] == run.digest


def load(path: Path) -> dict[str, dict[str, Row]]:
    """Rows by kernel and size; none where there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def store(path: Path, found: Mapping[str, Mapping[str, Row]]) -> None:
    """Writes the file at once: whoever is ended leaves the old one or the new one."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    part.replace(path)


def take(path: Path, others: Sequence[Path]) -> None:
    """Takes current rows of other files, where there is none in this."""
    found, from_others = load(path), [load(other) for other in others]
    for run in runs():
        for rows in from_others:
            row = rows.get(run.name, {}).get(run.size.name)
            if is_current(row, run) and not is_current(found.get(run.name, {}).get(run.size.name), run):
                found.setdefault(run.name, {})[run.size.name] = row or {}
    store(path, found)


def record(path: Path, patterns: Sequence[str]) -> None:
    """Runs what has no row, and says on standard error how far it is."""
    found = load(path)
    for run in sorted(runs(), key=cost):
        if not wanted(run, patterns) or is_current(found.get(run.name, {}).get(run.size.name), run):
            continue
        begun = time.perf_counter()
        row = measure(run)
        found.setdefault(run.name, {})[run.size.name] = row
        store(path, found)
        told = row.get("refused") or f"error {row['error']}, {row['findings']} findings"
        sys.stderr.write(f"{run.name} {run.size.name}: {told} ({time.perf_counter() - begun:.1f} s)\n")


def main() -> None:
    """Reads the arguments, and records or takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("patterns", nargs="*", help="which: cuda.matmul_naive/tiny, or with * and ?; all by default")
    parser.add_argument("--to", type=Path, default=DATA, help="the file that rows go to")
    parser.add_argument("--take", type=Path, nargs="+", help="files whose rows are taken; nothing is run")
    asked = parser.parse_args()
    if asked.take:
        take(asked.to, asked.take)
    else:
        record(asked.to, asked.patterns)


if __name__ == "__main__":
    main()
