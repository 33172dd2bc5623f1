"""Measures the ladders of kernels and writes `docs/data/kernel_ladders.json`; then run docs/generate.py."""

from __future__ import annotations

import json
from pathlib import Path

from generators.ladders import LADDERS, measure

DATA = Path(__file__).resolve().parent / "data" / "kernel_ladders.json"


def main() -> None:
    """Writes the file."""
    found = {name: {rung.name: measure(one, rung) for rung in one.rungs} for name, one in LADDERS.items()}
    DATA.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
