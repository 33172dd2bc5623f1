"""`nki.isa`: the instructions of the DMA engines."""

from __future__ import annotations

from collections.abc import Sequence

from triptych.languages.nki import buffers
from triptych.languages.nki.dtypes import nki_dtype
from triptych.languages.nki.indexing import refuse, whole_numbers
from triptych.languages.nki.isa_enums import dge_mode, engine, oob_mode
from triptych.languages.nki.isa_function import instruction
from triptych.languages.nki.isa_operands import Arguments, tensor_of, unsupported
from triptych.languages.nki.tensors import NkiTensor
from triptych.languages.nki.tracer import Tracer, current
from triptych.neuron.isa.dma_rows import TRANSPOSITIONS


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


def _axes(source: NkiTensor, axes: Sequence[int] | None) -> tuple[int, ...]:
    given = TRANSPOSITIONS.get(source.ndim, ()) if axes is None else whole_numbers(axes, "nisa.dma_transpose: axes")
    if sorted(given) != list(range(source.ndim)):
        known = ", ".join(map(str, TRANSPOSITIONS.values()))
        raise refuse(
            f"nisa.dma_transpose: axes {given} of src `{source.name}` of {source.ndim} axes; a DMA has {known}"
        )
    return given


def _permuted(tracer: Tracer, arguments: Arguments, dtype: object) -> NkiTensor:
    """A new SBUF tile of the shape that the permutation gives."""
    source = tensor_of(arguments["src"], "nisa.dma_transpose: src")
    shape = [source.shape[axis] for axis in _axes(source, arguments["axes"])]
    return tracer.allocate(shape, source.dtype if dtype is None else nki_dtype(dtype), buffers.sbuf)


def _check_hardware_descriptors(source: NkiTensor) -> None:
    """What the DMA engines can transpose with descriptors of their own making."""
    shape = source.shape
    first = shape[0] == 16 if source.ndim == 2 else shape[0] in (1, 2, 4, 8, 16) and shape[0] * shape[-2] % 16 == 0
    if not first or shape[-1] > 128 or source.dtype.itemsize != 2:
        raise refuse(
            f"nisa.dma_transpose(dge_mode=hwdge): src `{source.name}` is {source.dtype} {list(shape)}; expected a "
            "16-bit dtype, a last axis of at most 128, and a first axis of 16 (of 1, 2, 4, 8 or 16 with more axes, "
            "which times the last but one is a multiple of 16)"
        )


@instruction(_permuted)
def dma_transpose(
    dst: NkiTensor,
    src: NkiTensor,
    axes: Sequence[int] | None = None,
    priority: int | None = None,
    dge_mode: dge_mode = dge_mode.unknown,
    oob_mode: oob_mode = oob_mode.error,
    mask: object = None,
) -> int | None:
    """dst = src with its axes permuted by (1, 0), (2, 1, 0) or (3, 1, 2, 0): the first and the last change places."""
    del priority, oob_mode
    unsupported("dma_transpose", mask=mask)
    source = tensor_of(src, "nisa.dma_transpose: src")
    if dge_mode.name == "hwdge":
        _check_hardware_descriptors(source)
    operands = {"dst": tensor_of(dst, "nisa.dma_transpose: dst"), "src": source}
    return current().emit("dma_transpose", operands, {"axes": _axes(source, axes)})
