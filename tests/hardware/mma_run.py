"""Runs the kernels of tensor instructions on operands, by either executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from mma_inputs import Bits, Matrices
from mma_kernels import block_of, fragments_of, kernel_text, output_shape, results_of
from mma_kinds import Kind
from numpy.typing import NDArray

from triptych.core.dtypes import DTYPES
from triptych.core.handles import AddressSpace, Handle, Storage
from triptych.core.plan import Launch, Program
from triptych.core.settings import scope
from triptych.gpu import run_launch
from triptych.gpu.oracle import run_launch_slowly

Execute = Callable[[Program, Launch, Mapping[Storage, NDArray[np.uint8]]], object]


def run_generated(kind: Kind, made: Sequence[Matrices], numerics: str) -> Bits:
    """D of all multiplications, (tiles, m, n), by generated code."""
    return _run(run_launch, kind, made, numerics)


def run_oracle(kind: Kind, made: Sequence[Matrices], numerics: str) -> Bits:
    """The same by the oracle."""
    return _run(run_launch_slowly, kind, made, numerics)


def _run(execute: Execute, kind: Kind, made: Sequence[Matrices], numerics: str) -> Bits:
    operands = [np.concatenate(parts) for parts in zip(*made, strict=True)]
    inputs, tiles = fragments_of(kind, *operands), len(operands[0])
    outputs = np.zeros(output_shape(kind, tiles), inputs.dtype)
    space, dtype = AddressSpace(), DTYPES["u64" if inputs.itemsize == 8 else "u32"]
    arrays = {space.place("in", inputs.nbytes): inputs, space.place("out", outputs.nbytes): outputs}
    handles = tuple(Handle(storage, dtype, array.shape, array.strides) for storage, array in arrays.items())
    launch = Launch("program", "mma", (tiles, 1, 1), (block_of(kind), 1, 1), handles)
    memory = {storage: array.reshape(-1).view(np.uint8) for storage, array in arrays.items()}
    with scope(tensor_numerics=numerics, workers=1):
        execute(Program("gpu", kernel_text(kind), "ptx", "sm_90a"), launch, memory)
    return results_of(kind, outputs)
