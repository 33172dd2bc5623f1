"""Records what the tensor cores of this machine's GPU give: needs ptxas and the driver, nothing of triptych.

python benchmarks/hardware/record_mma.py OUTPUT.npz [WHOLE.npz]

The record keeps 8 × 8 results of the first multiplication of each kind and style, and digests of all results and of
the operands, which `tests/hardware/mma_inputs.py` makes again from seeds; WHOLE.npz gets all results.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "tests" / "hardware")]

from device import Device, DriverError
from mma_inputs import Bits, matrices
from mma_kernels import block_of, fragments_of, kernel_text, output_shape, results_of
from mma_kinds import KINDS, Kind, width
from recording import origin, store


def digest_of(*arrays: Bits) -> str:
    """A digest of raw bits."""
    together = hashlib.sha256()
    for array in arrays:
        together.update(np.ascontiguousarray(array, np.uint64).tobytes())
    return together.hexdigest()[:16]


def run(device: Device, kind: Kind, operands: Sequence[Bits]) -> Bits:
    """The results (tiles, m, n) of a kind on the device.

    Raises:
        DriverError: where the assembler or the driver says no.
    """
    cubin = device.assemble(kernel_text(kind))
    inputs, tiles = fragments_of(kind, *operands), len(operands[0])
    outputs = np.zeros(output_shape(kind, tiles), inputs.dtype)
    device.launch(cubin, "mma", inputs, outputs, tiles, block_of(kind))
    return results_of(kind, outputs)


def _record(device: Device, kind: Kind) -> tuple[dict[str, object], dict[str, Bits]]:
    """A kind's entry, and its results by style."""
    made = {style: matrices(kind, style) for style in kind.styles}
    joined = [np.concatenate(parts) for parts in zip(*made.values(), strict=True)]
    try:
        results = run(device, kind, joined)
    except DriverError as error:
        return {"kind": kind.name, "refused": str(error)}, {}
    by_style = dict(zip(made, np.split(results, len(made)), strict=True))
    styles = {s: [digest_of(*made[s]), digest_of(by_style[s])] for s in made}
    return {"kind": kind.name, "styles": styles}, by_style


def main(output: Path, whole: Path | None) -> None:
    """Assembles, runs, writes."""
    device = Device()
    kinds: list[dict[str, object]] = []
    first: dict[str, NDArray[Any]] = {}
    every: dict[str, NDArray[Any]] = {}
    for number, kind in enumerate(KINDS):
        entry, results = _record(device, kind)
        kinds.append(entry)
        if results:
            container = np.dtype(f"u{width(kind.d) // 8}")
            first[f"outputs{number}"] = np.array([r[0, :8, :8] for r in results.values()]).astype(container)
            every[str(number)] = np.array(list(results.values())).astype(container)
    record = {
        **origin(),
        "kinds": kinds,
    }
    store(output, first, record=record)
    if whole:
        store(whole, every)
    refused = [entry["kind"] for entry in kinds if "refused" in entry]
    print(f"{len(first)} kinds recorded, refused: {refused}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
