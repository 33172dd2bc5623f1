"""Records what the GPU of this machine makes of each arithmetic row: needs ptxas and the driver, nothing of triptych.

python benchmarks/hardware/record_rows.py BUNDLE.npz OUTPUT.npz

`rows.py` writes the bundle. The record keeps the operands' digest, so that a changed bundle is noticed.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

from device import Device, DriverError
from recording import origin, store

BLOCK = 32
_REFUSAL = re.compile(r"line (\d+); error\s*: (.*)")


def _for_this_device(text: str) -> str:
    """The newest PTX version and this device's target, so that every row that it has is taken."""
    return re.sub(r"\.version \S+\s+\.target \S+", ".version 8.6\n.target sm_90a", text, count=1)


def _assemble(device: Device, text: str) -> tuple[bytes, dict[str, str]]:
    """The code of a kernel without the instructions that the assembler refuses, and why it refuses each opcode."""
    lines = text.splitlines()
    refused: dict[str, str] = {}
    while True:
        try:
            return device.assemble("\n".join(lines)), refused
        except DriverError as error:
            found = {int(number): reason for number, reason in _REFUSAL.findall(str(error))}
            if not found:
                raise
            for number, reason in found.items():
                refused[lines[number - 1].split()[0]] = reason
                lines[number - 1] = ""


def main(bundle: Path, output: Path) -> None:
    """Assembles, runs, writes."""
    device = Device()
    data = np.load(bundle)
    rows: list[dict[str, object]] = []
    arrays: dict[str, NDArray[np.uint64]] = {}
    for number, kernel in enumerate(json.loads(str(data["kernels"]))):
        inputs, outputs = data[f"inputs{number}"], np.zeros(kernel["shape"], np.uint64)
        digest = hashlib.sha256(inputs).hexdigest()[:16]
        row: dict[str, object] = {"row": kernel["row"], "opcodes": kernel["opcodes"], "inputs": digest}
        try:
            cubin, refused = _assemble(device, _for_this_device(kernel["text"]))
            device.launch(cubin, "row", inputs, outputs, kernel["shape"][1] // BLOCK, BLOCK)
        except DriverError as error:
            rows.append(row | {"failed": str(error)})
            continue
        arrays[f"outputs{len(rows)}"] = outputs
        rows.append(row | ({"refused": refused} if refused else {}))
    record = {
        **origin(),
        "options": "-arch=sm_90a --fmad=false -O1",
        "rows": rows,
    }
    store(output, arrays, record=record)
    print(f"{len(arrays)} rows recorded, {len(rows) - len(arrays)} failed")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
