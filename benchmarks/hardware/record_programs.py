"""Records what whole programs give on the GPU of this machine, an H200: needs ptxas, the driver and triptych.

python benchmarks/hardware/record_programs.py OUTPUT.npz [WHOLE.npz]

The programs are triptych's kernels of `tests/hardware/program_cases.py`, compiled by the NVRTC and the Triton that are
installed. Each is assembled twice: with every operation rounded by itself, which is recorded, and with ptxas's own
options, which may contract multiplications and additions; of these the record says how far they are from the first.
The record keeps the programs and launches as a plan, digests of all outputs, and some outputs; WHOLE.npz gets all.
"""

from __future__ import annotations

import lzma
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import triton

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "tests" / "hardware")]

from capture_programs import capture
from device import ROUND_EACH, Device, DriverError
from launch_arguments import argument_of
from program_cases import Case, cases
from program_run import Output, arrays_of, difference, digest_of
from recording import origin, store

from triptych.core.plan import Launch, Plan, Program
from triptych.core.serialise import pack
from triptych.languages.cuda import nvrtc

OPTIONS: Mapping[str, Sequence[str]] = {"each rounded": ROUND_EACH, "ptxas's own": ()}


def run(device: Device, cubin: bytes, case: Case, launch: Launch) -> list[Output]:
    """The outputs of a case on the device.

    Raises:
        DriverError: where the driver says no.
    """
    assert launch.cluster == (1, 1, 1)
    assert not launch.cooperative
    arrays = arrays_of(case, launch)
    places = {storage: device.copy_there(array.data) for storage, array in arrays.items()}
    arguments = [argument_of(device, argument, places) for argument in launch.arguments]
    device.run(cubin, launch.entry, arguments, launch.grid, launch.block, launch.shared_bytes)
    outputs = [array for array in arrays.values() if array.is_output]
    for storage, array in arrays.items():
        if array.is_output:
            device.copy_back(places[storage], array.data)
    device.free(*places.values())
    return outputs


def _assemble(device: Device, programs: Mapping[str, Program]) -> dict[tuple[str, str], bytes | DriverError]:
    """The cubins by option and program; the assembler runs on many at a time."""

    def one(key: tuple[str, str]) -> bytes | DriverError:
        try:
            return device.assemble(programs[key[1]].text, OPTIONS[key[0]])
        except DriverError as error:
            return error

    keys = [(option, name) for option in OPTIONS for name in programs]
    with ThreadPoolExecutor(12) as threads:
        return dict(zip(keys, threads.map(one, keys), strict=True))


def _record(device: Device, plan: Plan, found: list[Case]) -> tuple[list[object], list[list[list[Output]]]]:
    """The entries of all cases, and their outputs by option."""
    cubins = _assemble(device, plan.programs)
    rows: list[object] = []
    whole: list[list[list[Output]]] = []
    for case, launch in zip(found, plan.nodes, strict=True):
        assert isinstance(launch, Launch)
        row: dict[str, object] = {"case": case.name, "inputs": digest_of(*case.inputs())}
        outputs: list[list[Output]] = []
        try:
            for option in OPTIONS:
                cubin = cubins[option, launch.program]
                if isinstance(cubin, DriverError):
                    raise cubin
                outputs.append(run(device, cubin, case, launch))
            row["outputs"] = [digest_of(one.data) for one in outputs[0]]
            row["contracted"] = [difference(*pair).as_json() for pair in zip(outputs[1], outputs[0], strict=True)]
        except DriverError as error:
            row["failed"] = str(error)
            print(f"{case.name}: {error}")
        rows.append(row)
        whole.append(outputs)
    return rows, whole


def main(output: Path, whole: Path | None) -> None:
    """Captures, assembles, runs, writes."""
    found = list(cases())
    plan = capture(found)
    print(f"{len(plan.nodes)} launches of {len(plan.programs)} programs", flush=True)
    rows, outputs = _record(Device(), plan, found)
    record = {
        **origin(),
        "options": " ".join(ROUND_EACH),
        "compilers": {"NVRTC": ".".join(map(str, nvrtc.version())), "Triton": triton.__version__},
        "cases": rows,
    }
    shown: dict[str, Any] = {}
    everything: dict[str, Any] = {}
    for i, (case, by_option) in enumerate(zip(found, outputs, strict=True)):
        for option, several in enumerate(by_option):
            for j, one in enumerate(several):
                everything[f"{i}.{option}.{j}"] = one.data
                if case.is_shown and option == 0:
                    shown[f"outputs{i}.{j}"] = one.data
    texts = np.frombuffer(lzma.compress(pack(plan), preset=9), np.uint8)
    store(output, {"plan": texts, **shown}, record=record)
    if whole:
        store(whole, everything)
    print(f"{len(rows)} cases recorded")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
