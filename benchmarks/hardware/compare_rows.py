"""Writes how the arithmetic rows compare with the recording of a GPU, for the pages of the documentation.

python benchmarks/hardware/compare_rows.py

Run it after a new recording or a change to an approximate row; `tests/hardware/test_rows.py` compares with the result.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TESTS = Path(__file__).parents[2] / "tests"
sys.path[:0] = [str(TESTS / "gpu_table"), str(TESTS / "hardware")]

from recorded_rows import AGREEMENT, agreement, record


def main() -> None:
    """Compares, writes."""
    found = {name: record()[name] for name in ("device", "assembler", "options", "date")} | {"opcodes": agreement()}
    AGREEMENT.write_text(json.dumps(found, indent=1) + "\n")
    same = sum(value == "same" for value in found["opcodes"].values())
    print(f"{len(found['opcodes'])} opcodes, {same} with the device's very bits")


if __name__ == "__main__":
    main()
