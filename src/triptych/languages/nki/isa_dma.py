"""`nki.isa`: the instructions of the DMA engines."""

from __future__ import annotations

from triptych.languages.nki.isa_enums import (
    dge_mode,
    engine,
    oob_mode,
)
from triptych.languages.nki.isa_function import instruction
from triptych.languages.nki.isa_operands import tensor_of, unsupported
from triptych.languages.nki.tensors import NkiTensor
from triptych.languages.nki.tracer import current


@instruction()
def dma_copy(
    dst: NkiTensor,
    src: NkiTensor,
    priority: int | None = None,
    oob_mode: oob_mode = oob_mode.error,
    dge_mode: dge_mode = dge_mode.unknown,
    engine: engine = engine.unknown,
    mask: object = None,
    dst_rmw_op: object = None,
) -> int | None:
    """dst = src between HBM and SBUF, elements in order; priority, engine and dge_mode change the speed alone."""
    # Static accesses are checked when they are traced: oob_mode has nothing left to decide.
    del priority, dge_mode, engine, oob_mode
    unsupported("dma_copy", dst_rmw_op=dst_rmw_op)
    operands = {"dst": tensor_of(dst, "nisa.dma_copy: dst"), "src": tensor_of(src, "nisa.dma_copy: src")}
    return current().emit("dma_copy", operands, mask=mask)
