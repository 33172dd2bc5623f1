"""Whole programs on triptych's machine against the recorded ones: for the page of coverage.

python benchmarks/hardware/compare_programs.py

All recorded programs run in both arithmetics of tensor cores; `docs/data/hardware_programs.json` gets what came out.
The device is not needed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "hardware"))

from program_bounds import part_of_bound
from program_cases import Case, cases
from program_run import Output, record, run_here, same_bits, shown

TABLE = ROOT / "docs" / "data" / "hardware_programs.json"


@dataclass
class Row:
    """What the outputs of one kernel came to; each is an array of a launch."""

    kernel: str
    target: str
    dtype: str
    outputs: int = 0
    same: int = 0
    """Outputs with the device's bits, in its arithmetic."""
    plain: int = 0
    """Outputs of the programs with plain functions."""
    plain_same: int = 0
    elements: int = 0
    differing: int = 0
    """Elements of `outputs` whose bits differ, in the device's arithmetic."""
    part: float = 0
    """The largest difference, as a part of what it may be."""
    fast_differing: int = 0
    fast_part: float = 0
    contracted_differing: float = 0
    """Elements whose bits differ on the device where the assembler contracts."""


def _compare(row: Row, case: Case, number: int) -> None:
    ours = run_here(case, number, "hardware")
    same = same_bits(number, ours)
    if case.plain:
        row.plain, row.plain_same = row.plain + len(same), row.plain_same + sum(same)
        return
    assert all(same) or case.is_shown, f"{case.name}: other bits, and the record has only their digest"
    fast = run_here(case, number, "fast")
    theirs = shown(number, ours) if case.is_shown else ours
    row.outputs, row.same = row.outputs + len(same), row.same + sum(same)
    for place, (mine, quick, device) in enumerate(zip(ours, fast, theirs, strict=True)):
        row.elements += device.bits.size
        row.differing += _differing(mine, device)
        row.fast_differing += _differing(quick, device)
        row.part = max(row.part, part_of_bound(case, place, mine, device))
        row.fast_part = max(row.fast_part, part_of_bound(case, place, quick, device))
        row.contracted_differing += record()["cases"][number]["contracted"][place]["share"] * device.bits.size


def _differing(found: Output, expected: Output) -> int:
    return int(np.count_nonzero(found.bits != expected.bits))


def main() -> None:
    """Runs all, and writes the table."""
    rows: dict[tuple[str, str, str], Row] = {}
    for number, case in enumerate(cases()):
        key = case.kernel, case.target, case.dtype
        _compare(rows.setdefault(key, Row(*key)), case, number)
        print(case.name, flush=True)
    said: Mapping[str, object] = {name: value for name, value in record().items() if name != "cases"}
    document = {**said, "launches": len(cases()), "rows": [asdict(row) for row in rows.values()]}
    TABLE.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
