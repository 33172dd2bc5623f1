"""Runs kernels at the named sizes that fit and writes `docs/data/kernel_sizes.json`; then run docs/generate.py.

It takes a while, so the file is written after each run: small sizes first.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from generators.kernel_sizes import measure, runs

DATA = Path(__file__).resolve().parent / "data" / "kernel_sizes.json"


def main() -> None:
    """Writes the file, and says on standard error how far it is."""
    found: dict[str, dict[str, dict[str, object]]] = {}
    for run in sorted((run for run in runs() if run.fits), key=lambda run: run.least_bytes):
        sys.stderr.write(f"{run.operator.name} {run.size.name}: {run.language} {run.name}\n")
        sizes = found.setdefault(run.operator.name, {}).setdefault(run.size.name, {})
        sizes[run.language] = {"function": run.name, "dtype": run.dtype, **measure(run)}
        DATA.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
