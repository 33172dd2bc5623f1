"""Runs NKIBench's kernels and writes `docs/data/nkibench.json`; then run docs/generate.py.

    python docs/record_nkibench.py CHECKOUT [--times-only] [NAME …]

CHECKOUT is a clone of AccelOpt (zhang677/AccelOpt on GitHub), which is no part of this repository. Each kernel of
`NKIBench/kernels` is traced and simulated for Trainium, and run on random inputs beside its reference of
`NKIBench/reference`, unless there is `--times-only`: the largest take some minutes. The published times are those of
`experiments/full_complete_local/profile_results.csv`. What is not named keeps what was recorded of it.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

import triptych as tt
from triptych.chips import NeuronChip, load
from triptych.languages.nki.launching.kernel import Kernel
from triptych.neuron.isa.serialise import from_json
from triptych.neuron.isa.trace import Instruction
from triptych.neuron.timeline.costs import FLOAT32_PASSES, PASS_CYCLES
from triptych.neuron.timeline.schedule import CoreWork, Simulation
from triptych.neuron.timeline.timeline import Timeline, timeline_of

DATA = Path(__file__).resolve().parent / "data" / "nkibench.json"
CHIP = "trn1"
MOST_INSTRUCTIONS = 1 << 22
FITS = (0, 32, 64, 96, 128)
"""Cycles of a pass, of which all kernels but one choose the one that the left-out kernel is then judged by."""


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _published(checkout: Path) -> dict[str, float]:
    """Milliseconds by problem."""
    file = checkout / "experiments" / "full_complete_local" / "profile_results.csv"
    with file.open(encoding="utf-8", newline="") as rows:
        return {row["problem"]: float(json.loads(row["profile"])["latency"]) for row in csv.DictReader(rows)}


def _error(found: Any, expected: Any) -> float:  # noqa: ANN401  # arrays of what the modules return
    """The length of the difference by that of what is expected: NKIBench's own measure."""
    wanted = np.asarray(expected, np.float64)
    return float(np.linalg.norm(np.asarray(found, np.float64) - wanted) / np.linalg.norm(wanted))


def _with_pass_cycles(timeline: Timeline, chip: NeuronChip, cycles: int) -> float:
    """Milliseconds with another number of cycles for each pass of a float32 product."""
    work = timeline.work
    more = FLOAT32_PASSES * (cycles - PASS_CYCLES) / chip.tensor_clock_hz

    def float32(instruction: Instruction) -> bool:
        read = {"nc_matmul": "moving", "nc_transpose": "data"}.get(instruction.operation)
        return read is not None and work.tensors[instruction.region(read).tensor].dtype.name == "f32"

    cores: list[CoreWork] = []
    for core, program in zip(work.cores, work.programs, strict=True):
        added = [more if float32(one) else 0.0 for one in program]
        taken = zip(core.seconds, core.instructions, strict=True)
        cores.append(replace(core, seconds=[seconds + added[at] for seconds, at in taken]))
    return round(1e3 * max(Simulation(cores, work.machine).run().end), 4)


def _record(kernel: Kernel, reference: Any, *, times_only: bool) -> dict[str, Any]:  # noqa: ANN401  # a module
    """What there is to say of one kernel."""
    np.random.seed(0)  # what their inputs are drawn from
    inputs = reference.get_inputs()
    given = reference.transform_to_nki_inputs(inputs)
    chip = load(CHIP)
    assert isinstance(chip, NeuronChip)
    with tt.profile(chip=CHIP), tt.scope(trace_limit=MOST_INSTRUCTIONS):
        trace = from_json(kernel.capture(*given).program.text)
        made = None if times_only else kernel(*given)
    steps = [range(len(program)) for program in trace.programs]
    timeline = timeline_of(trace, steps, chip)
    found: dict[str, Any] = {
        "instructions": sum(map(len, trace.programs)),
        "modelled_ms": round(1e3 * timeline.seconds, 4),
        "by_pass_cycles": {cycles: _with_pass_cycles(timeline, chip, cycles) for cycles in FITS},
        "busiest": max(timeline.busy, key=timeline.busy.__getitem__).value,
    }
    if made is not None:
        expected = reference.forward(*inputs)
        wanted = list(cast("tuple[Any, ...]", expected)) if isinstance(expected, tuple) else [expected]
        results = reference.transform_nki_outputs(made, expected)
        found["error"] = float(f"{max(_error(*pair) for pair in zip(results, wanted, strict=True)):.2g}")
    return found


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--times-only", action="store_true")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_intermixed_args()
    folder, published = asked.checkout / "NKIBench", _published(asked.checkout)
    cases = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    recorded: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {"kernels": {}}
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=asked.checkout, capture_output=True, text=True, check=False)
    recorded["version"] = head.stdout.strip() or recorded.get("version", "")
    recorded["total"] = len(cases)
    tt.nki.activate()
    for name in asked.names or cases:
        case = next(iter(cases[name]["cases"].values()))
        files = case["impls"][0]
        kernel, reference = _module(folder / files["kernel"]).kernel, _module(folder / files["task"])
        found = _record(kernel, reference, times_only=asked.times_only)
        entry: dict[str, Any] = recorded["kernels"].setdefault(name, {})
        entry |= {"values": case["values"], "published_ms": round(published[name], 4), **found}
        DATA.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
        print(name, found, flush=True)


if __name__ == "__main__":
    main()
