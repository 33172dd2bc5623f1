"""The kernels of `tests/hardware/edge_kernels.py` as a bundle for `record_rows.py`, as `rows.py` writes those of rows.

python benchmarks/hardware/edges.py BUNDLE.npz
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TESTS = Path(__file__).parents[2] / "tests"
sys.path[:0] = [str(TESTS / "gpu_table"), str(TESTS / "hardware")]

from edge_kernels import edge_kernels
from recording import store


def main(bundle: Path) -> None:
    """Writes the bundle."""
    arrays: dict[str, NDArray[np.uint64]] = {}
    kernels: list[dict[str, object]] = []
    for number, kernel in enumerate(edge_kernels()):
        arrays[f"inputs{number}"] = kernel.inputs
        kernels.append({"row": kernel.name, "text": kernel.text, "shape": kernel.shape, "opcodes": kernel.opcodes})
    store(bundle, arrays, kernels=kernels)
    print(f"{len(kernels)} kernels")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
