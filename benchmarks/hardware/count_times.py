"""Counts the work of the calls that a GPU timed and writes `docs/data/kernel_times.json`; then run docs/generate.py.

python benchmarks/hardware/count_times.py BUNDLE.npz TIMES.json

The bundle is that of `capture_times.py`, the times are those of `record_times.py`. What has been counted already, of
the same program, is kept: the file is written behind each call, those of small inputs first.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from capture_times import CHIP
from time_inputs import Array, values_of

import triptych as tt
from triptych.core.serialise import digest, unpack
from triptych.execution.run import run_plan

DATA = Path(__file__).resolve().parents[2] / "docs" / "data" / "kernel_times.json"
Row = dict[str, Any]


def counted(packed: bytes, inputs: list[Array]) -> list[Row]:
    """What each launch of a plan did: its grid, its block and all that was counted, but for what is 0."""
    with tt.profile(chip=CHIP):
        run = run_plan(unpack(packed), {one.name: values_of(one) for one in inputs})
    return [
        {
            "kernel": one.kernel, "target": one.target, "grid": one.grid, "block": one.block,
            "counters": {name: one.counters.value(name) for name in one.counters if one.counters.value(name)},
        }
        for one in run.launches
    ]  # fmt: skip


def _short(value: object) -> object:
    """Times with five digits, which is more than they repeat to."""
    if isinstance(value, dict):
        return {key: _short(one) for key, one in cast("Row", value).items()}
    return float(f"{value:.5g}") if isinstance(value, float) else value


def written(about: Mapping[str, Any], rows: list[Row]) -> str:
    """The file's text: what is said of all, and a line a call."""
    head = json.dumps({key: value for key, value in about.items() if key != "cases"}, indent=1)
    short = [{key: _short(one) for key, one in row.items()} for row in rows]
    lines = ",\n  ".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in short)
    return f'{head.removesuffix("}").rstrip()},\n "cases": [\n  {lines}\n ]\n}}\n'


def main(bundle: Path, times: Path) -> None:
    """Writes the file, and says on standard error how far it is."""
    data, measured = np.load(bundle), json.loads(times.read_text(encoding="utf-8"))
    rows: list[Row] = measured["cases"]
    before: list[Row] = json.loads(DATA.read_text(encoding="utf-8"))["cases"] if DATA.exists() else []
    counts = {(one["case"], one["plan"]): one["counted"] for one in before if "counted" in one}
    inputs: dict[str, list[Array]] = {
        case["name"]: [Array(**one | {"shape": tuple(one["shape"])}) for one in case["inputs"]]
        for case in json.loads(str(data["cases"]))
    }
    found = [row for row in rows if row["case"] in inputs and "failed" not in row]
    for row in sorted(found, key=lambda row: sum(math.prod(one.shape) for one in inputs[row["case"]])):
        packed = data[f"plan:{row['case']}"].tobytes()
        row["plan"] = digest(unpack(packed))
        key = row["case"], row["plan"]
        if key not in counts:
            sys.stderr.write(f"{row['case']}\n")
            counts[key] = counted(packed, inputs[row["case"]])
        row["counted"] = counts[key]
        DATA.write_text(written(measured, rows), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
