"""`nki.isa`: the instructions of the Tensor engine."""

from __future__ import annotations

from collections.abc import Sequence

from triptych.languages.nki.isa_functions.enums import (
    chosen_engine,
    engine,
    matmul_perf_mode,
    perf_mode_name,
)
from triptych.languages.nki.isa_functions.function import instruction
from triptych.languages.nki.isa_functions.operands import mirror, product
from triptych.languages.nki.language_functions.movement import emit_product, mirrored_cut, mirrored_parts
from triptych.languages.nki.tracing.forms import shared_attributes
from triptych.languages.nki.tracing.indexing import refuse, whole_numbers
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import current
from triptych.neuron.isa import Engine, Space
from triptych.neuron.isa.trace import AttributeValue


@instruction(product)
def nc_matmul(
    dst: NkiTensor,
    stationary: NkiTensor,
    moving: NkiTensor,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    accumulate: bool | None = None,
    tile_position: Sequence[int] = (),
    tile_size: Sequence[int] = (),
    perf_mode: matmul_perf_mode = matmul_perf_mode.none,
    mask: object = None,
) -> int | None:
    """dst[M, N] (+)= stationary[K, M].T @ moving[K, N], K and M up to 128, N up to 512.

    `accumulate=None`: the first matmul onto an element of PSUM replaces it, the next ones add. The one-zero hints
    change the speed alone, as does the part of the array that tile_position and tile_size choose. `double_row`: tiles
    [K, 2, …] of 8-bit floats, whose second axis belongs to the contraction. `is_transpose`: moving is a permutation,
    and the elements of stationary are moved bit for bit. A mask is one of moving: of K and N; Beta 1
    masks the operands too, `stationary[i_f < m]`.
    """
    del is_stationary_onezero, is_moving_onezero
    if accumulate is not None and not isinstance(accumulate, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse(f"nisa.nc_matmul: accumulate={accumulate!r}; expected True, False or None")
    attributes = shared_attributes(
        "nc_matmul",
        accumulate=accumulate,
        is_transpose=bool(is_transpose),
        tile_position=whole_numbers(tile_position, "tile_position"),
        tile_size=whole_numbers(tile_size, "tile_size"),
        double_row=perf_mode_name(perf_mode) == "double_row",
    )
    return emit_product(current(), dst, stationary, moving, attributes, mask)


@instruction()
def nc_matmul_mx(
    dst: NkiTensor,
    stationary: NkiTensor,
    moving: NkiTensor,
    stationary_scale: NkiTensor,
    moving_scale: NkiTensor,
    tile_position: Sequence[int] | None = None,
    tile_size: Sequence[int] | None = None,
    accumulate: bool | None = None,
) -> int | None:
    """dst[M, N] (+)= stationary.T @ moving of packed MX numbers, each times its scale; NeuronCore-v4."""
    operands = {
        "dst": dst, "stationary": stationary, "moving": moving,
        "stationary_scale": stationary_scale, "moving_scale": moving_scale,
    }  # fmt: skip
    attributes: dict[str, AttributeValue] = {
        "accumulate": accumulate,
        "tile_position": whole_numbers(tile_position or (), "tile_position"),
        "tile_size": whole_numbers(tile_size or (), "tile_size"),
    }
    return current().emit("nc_matmul_mx", operands, attributes)


@instruction(mirror)
def nc_transpose(dst: NkiTensor, data: NkiTensor, engine: engine = engine.unknown, mask: object = None) -> int | None:
    """dst[F, P] = data[P, F].T: the Tensor engine (up to 128 x 128, into PSUM) or the Vector engine (up to 32 x 32)."""
    tracer, chosen = current(), chosen_engine(engine)
    if chosen is None:
        chosen = Engine.TENSOR if dst.buffer.space is Space.PSUM else Engine.VECTOR
    operation = "nc_transpose" if chosen is Engine.TENSOR else "nc_transpose_vector"
    part = tracer.cut(mask, data.shape)
    parts = mirrored_parts(dst, data, part)
    recorded = None if parts is None else tracer.emit(operation, {"dst": parts[0], "data": parts[1]}, engine=chosen)
    if mask is not None:
        tracer.note_filled(dst, mirrored_cut(part))
    return recorded
