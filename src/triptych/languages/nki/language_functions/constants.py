"""`nki.language`: data that the compiled kernel brings with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.languages.nki.language_functions.elementwise import on_chip
from triptych.languages.nki.tracing import buffers
from triptych.languages.nki.tracing.dtypes import nki_dtype, uint8
from triptych.languages.nki.tracing.indexing import refuse, whole
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import current
from triptych.neuron.isa.trace import BETA1


def _array(constant: object, dtype: object) -> NDArray[Any]:
    if isinstance(constant, str | Path):
        constant = np.load(constant, allow_pickle=False)
    array = np.asarray(constant)
    kind = nki_dtype(array.dtype if dtype is None else dtype)
    if array.size == 0 or kind.fields is not None:
        raise refuse(f"nl.shared_constant of shape {list(array.shape)} and dtype {kind.name}: nothing that can be kept")
    return np.ascontiguousarray(array.astype(kind))


def shared_constant(constant: object, dtype: object = None) -> NkiTensor:
    """A tensor in shared HBM that holds the numbers of an array, or of a `.npy` file; it cannot be written."""
    return current("nl.shared_constant").constant(_array(constant, dtype))


def shared_identity_matrix(n: int, dtype: object = uint8, dst: NkiTensor | None = None) -> NkiTensor:
    """The identity matrix of n rows: a tile in SBUF (at most 128), made on chip; under Beta 1 a constant in HBM."""
    tracer = current("nl.shared_identity_matrix")
    rows = whole(n)
    if rows is None or rows < 1:
        raise refuse(f"nl.shared_identity_matrix: n={n!r} is no number of rows")
    if tracer.generation == BETA1 and dst is None:
        return tracer.constant(np.eye(rows).astype(nki_dtype(dtype)))
    target = tracer.allocate((rows, rows), nki_dtype(dtype), buffers.sbuf) if dst is None else on_chip(dst, "dst")
    if target.shape != (rows, rows):
        raise refuse(f"nl.shared_identity_matrix: dst `{target.name}` has the shape {list(target.shape)}")
    tracer.emit("memset", {"dst": target, "value": 1.0})
    affine = {"pattern": ((-1, rows),), "offset": 0, "channel_multiplier": 1, "cmp_op": "equal"}
    tracer.emit("affine_select", {"dst": target, "on_true_tile": target, "on_false_value": 0.0}, affine)
    return target
