"""`nki.isa`: the instructions of the DMA engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from triptych.languages.nki.isa_functions import enums
from triptych.languages.nki.isa_functions.enums import dge_mode, engine, oob_mode
from triptych.languages.nki.isa_functions.function import instruction
from triptych.languages.nki.isa_functions.operands import Arguments, tensor_of
from triptych.languages.nki.tracing import buffers
from triptych.languages.nki.tracing.dtypes import nki_dtype
from triptych.languages.nki.tracing.indexing import refuse, sequence, whole, whole_numbers
from triptych.languages.nki.tracing.operations import alu_name
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import Tracer, current
from triptych.neuron.isa.rows.dma import SOURCES, TRANSPOSITIONS
from triptych.neuron.isa.trace import CURRENT


def _skipping(tensor: NkiTensor, mode: object) -> NkiTensor:
    """The tensor, whose indices that are outside of it are left out where `oob_mode` says so."""
    if not isinstance(mode, oob_mode):
        raise refuse(f"oob_mode={mode!r} is no mode", "name one, such as nisa.oob_mode.skip")
    view = tensor.elements
    if mode is oob_mode.error or view.dynamic is None:
        return tensor
    return tensor.with_view(replace(view, dynamic=replace(view.dynamic, skip=True)))


_MODES = tuple(dge_mode)
_ANY_MODE, _ANY_ENGINE, _REFUSED = dge_mode.unknown, engine.unknown, oob_mode.error


def _check_mode(mode: object) -> None:
    if isinstance(mode, bool) or mode not in _MODES:
        raise refuse(f"dge_mode={mode!r} is no mode", "name one, such as nisa.dge_mode.hwdge")


def _check_descriptors(tracer: Tracer, source: NkiTensor, target: NkiTensor, mode: object, chosen: object) -> None:
    """What the generation of descriptors in hardware asks for."""
    _check_mode(mode)
    if mode != dge_mode.hwdge:
        if chosen is not engine.unknown and tracer.generation == CURRENT:
            raise refuse("nisa.dma_copy: engine= names who makes descriptors, for dge_mode=nisa.dge_mode.hwdge alone")
        return
    if tracer.hardware.core_generation < 3:
        raise refuse(f"nisa.dma_copy: dge_mode hwdge needs NeuronCore-v3 (gen3); {tracer.hardware.target} has none")
    if source.dtype != target.dtype:
        raise refuse(
            f"nisa.dma_copy: dge_mode hwdge moves elements as they are; src is {source.dtype}, dst is {target.dtype}"
        )


def check_priority(tracer: Tracer, priority: object) -> None:
    """The class of service of a transfer: None, or on NeuronCore-v4 0 to 3.

    Raises:
        NkiError: for anything else.
    """
    if priority is None:
        return
    if whole(priority) not in (0, 1, 2, 3):
        raise refuse(f"priority={priority!r}; expected 0 to 3")
    if tracer.hardware.core_generation < 4:
        raise refuse(f"priority= needs NeuronCore-v4 (gen4); {tracer.hardware.target} has no classes of service")


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
    """dst = src between HBM and SBUF, elements in order; priority, engine and dge_mode change the speed alone.

    Views by `.ap(vector_offset=…)` gather and scatter; `oob_mode.skip` leaves out what is outside. Beta 1's
    `dst_rmw_op=np.add` adds to dst.
    """
    tracer = current("nisa.dma_copy")
    source, target = tensor_of(src, "nisa.dma_copy: src"), tensor_of(dst, "nisa.dma_copy: dst")
    if dge_mode is not _ANY_MODE or engine is not _ANY_ENGINE:
        _check_descriptors(tracer, source, target, dge_mode, engine)
    check_priority(tracer, priority)
    if oob_mode is not _REFUSED:
        source, target = _skipping(source, oob_mode), _skipping(target, oob_mode)
    operands = {"dst": target, "src": source}
    if dst_rmw_op is None:
        return tracer.emit("dma_copy", operands, mask=mask)
    if alu_name(dst_rmw_op) != "add":
        raise refuse(f"nisa.dma_copy: dst_rmw_op is {alu_name(dst_rmw_op)}; a DMA adds")
    return tracer.emit("dma_accumulate", operands, mask=mask)


def _same_elements(first: NkiTensor, second: NkiTensor) -> bool:
    return first.elements == second.elements


@instruction()
def dma_compute(
    dst: NkiTensor,
    srcs: Sequence[NkiTensor],
    reduce_op: object,
    scales: Sequence[float] | None = None,
    unique_indices: bool = True,
    oob_mode: oob_mode = oob_mode.error,
) -> int | None:
    """dst = the sum of up to 16 tensors; with a vector of offsets dst is one of two, and gets the other added."""
    tracer = current("nisa.dma_compute")
    target = tensor_of(dst, "nisa.dma_compute: dst")
    sources = [tensor_of(one, f"nisa.dma_compute: srcs[{at}]") for at, one in enumerate(sequence(srcs))]
    if alu_name(reduce_op) != "add":
        raise refuse(f"nisa.dma_compute: reduce_op is {alu_name(reduce_op)}; a DMA has add")
    if scales is not None and any(scale != 1.0 for scale in scales):
        raise refuse(f"nisa.dma_compute: scales={list(scales)}; all must be 1.0")
    if not unique_indices:
        raise refuse("nisa.dma_compute: unique_indices=False is not supported by any release")
    if not 1 <= len(sources) <= SOURCES:
        raise refuse(f"nisa.dma_compute: {len(sources)} srcs; expected 1 to {SOURCES}")
    if not any(one.is_indirect() for one in (target, *sources)):
        return tracer.emit("dma_compute", {"dst": target, **{f"src{at}": one for at, one in enumerate(sources)}})
    others = [one for one in sources if not _same_elements(one, target)]
    if len(sources) != 2 or len(others) != 1:
        raise refuse(
            "nisa.dma_compute with a vector of offsets: expected two srcs, of which one is dst",
            "scatter: dst=out.ap(…), srcs=[tile, out.ap(…)]; gather: dst=tile, srcs=[data.ap(…), tile]",
        )
    return tracer.emit("dma_accumulate", {"dst": _skipping(target, oob_mode), "src": _skipping(others[0], oob_mode)})


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
    check_priority(current("nisa.dma_transpose"), priority)
    _check_mode(dge_mode)
    source = _skipping(tensor_of(src, "nisa.dma_transpose: src"), oob_mode)
    if dge_mode == enums.dge_mode.hwdge:
        _check_hardware_descriptors(source)
    tracer, order, target = current(), _axes(source, axes), tensor_of(dst, "nisa.dma_transpose: dst")
    part = tracer.cut(mask, source.shape)
    moved = tuple(part[axis] for axis in order) if part else part
    if part:
        target, source = target.part(moved or ()), source.part(part)
    recorded = None if part is None else tracer.emit("dma_transpose", {"dst": target, "src": source}, {"axes": order})
    if mask is not None:
        tracer.note_filled(target, moved)
    return recorded
