"""What the functions of `nki.isa` take, and which tiles Beta 1's form of them returns."""

from __future__ import annotations

from triptych.core.errors import UnsupportedFeature
from triptych.languages.nki import buffers
from triptych.languages.nki.dtypes import float32, nki_dtype, promote
from triptych.languages.nki.elementwise import is_number, number, on_chip
from triptych.languages.nki.frames import user_location
from triptych.languages.nki.indexing import refuse
from triptych.languages.nki.isa_enums import (
    engine,
    matmul_perf_mode,
)
from triptych.languages.nki.isa_function import Arguments, Result
from triptych.languages.nki.reductions import reduced_shape, trailing_axes
from triptych.languages.nki.tensors import NkiTensor
from triptych.languages.nki.tracer import TileOrNumber, Tracer


def unsupported(function: str, **given: object) -> None:
    """Refuse arguments that change the meaning in a way that is not implemented.

    Raises:
        UnsupportedFeature: for the first one that is set.
    """
    for name, value in given.items():
        if value not in (None, False, (), matmul_perf_mode.none):
            raise UnsupportedFeature(f"nisa.{function}({name}={value!r}) is not implemented", where=user_location())


def operand(value: object, what: str) -> TileOrNumber | None:
    """A tile, a number, or None."""
    if value is None or isinstance(value, NkiTensor):
        return value
    if is_number(value):
        return number(value)
    raise refuse(f"{what}: expected a tile or a number, got {type(value).__name__}")


def tensor_of(value: object, what: str) -> NkiTensor:
    """`value`, which must be a tensor."""
    if not isinstance(value, NkiTensor):
        raise refuse(f"{what}: expected a tensor, got {type(value).__name__}")
    return value


def like(*names: str) -> Result:
    """A new SBUF tile of the shape of the first operand, of the dtype that all of them are computed to."""

    def result(tracer: Tracer, arguments: Arguments, dtype: object) -> NkiTensor:
        tiles = [on_chip(arguments[name], name) for name in names]
        default = tiles[0].dtype
        for tile in tiles[1:]:
            default = promote(default, tile.dtype)
        return tracer.allocate(tiles[0].shape, default if dtype is None else nki_dtype(dtype), buffers.sbuf)

    return result


def product(tracer: Tracer, arguments: Arguments, dtype: object) -> NkiTensor:
    """A new PSUM tile [M, N] for stationary.T @ moving."""
    stationary, moving = on_chip(arguments["stationary"], "stationary"), on_chip(arguments["moving"], "moving")
    shape = (stationary.size // stationary.shape[0], *moving.shape[1:])
    return tracer.allocate(shape, float32 if dtype is None else nki_dtype(dtype), buffers.psum)


def mirror(tracer: Tracer, arguments: Arguments, dtype: object) -> NkiTensor:
    """A new tile [F, P]: in PSUM, or in SBUF where the Vector engine transposes."""
    data = on_chip(arguments["data"], "data")
    shape = (data.size // data.shape[0], data.shape[0])
    memory = buffers.sbuf if arguments["engine"] is engine.vector else buffers.psum
    return tracer.allocate(shape, data.dtype if dtype is None else nki_dtype(dtype), memory)


def reduced(tracer: Tracer, arguments: Arguments, dtype: object) -> NkiTensor:
    """A new SBUF tile without the reduced axes."""
    data = on_chip(arguments["data"], "data")
    axes = trailing_axes(arguments["axis"], data.shape, "nisa.tensor_reduce")
    shape = reduced_shape(data.shape, axes, bool(arguments["keepdims"]))
    return tracer.allocate(shape, data.dtype if dtype is None else nki_dtype(dtype), buffers.sbuf)
