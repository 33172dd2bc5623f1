"""The kernels whose results are recorded on a GPU: one for each arithmetic row of the table, as its tests run it.

python benchmarks/hardware/rows.py BUNDLE.npz

writes each row's PTX and operands, for `record_rows.py` on a machine that has a GPU and needs nothing of triptych.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "gpu_table"))

from recording import store
from row_kernel import instances_of, kernel_of_instances

from triptych.gpu.isa import TABLE, Effect, Row


def name_of(row: Row) -> str:
    """A row's name in the record."""
    return f"{row.syntax.partition(' ')[0]}:{row.types.replace(' ', ',')}"


TARGET = "sm_90"
"""The device's: of rows with opcodes of later ones, the others are taken."""


def main(bundle: Path) -> None:
    """Writes the bundle."""
    arrays: dict[str, NDArray[np.uint64]] = {}
    kernels: list[dict[str, object]] = []
    for row in TABLE:
        if row.effect is Effect.NONE and (instances := instances_of(row, TARGET)):
            kernel = kernel_of_instances(instances)
            number = len(kernels)
            arrays[f"inputs{number}"] = kernel.inputs
            opcodes = [instance.text for instance in kernel.instances]
            kernels.append({"row": name_of(row), "text": kernel.text, "shape": kernel.shape, "opcodes": opcodes})
    store(bundle, arrays, kernels=kernels)
    print(f"{len(kernels)} kernels")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
