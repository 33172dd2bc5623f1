"""What the functions of `nki.isa` take, and which tiles Beta 1's form of them returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from triptych.core.errors import UnsupportedFeature
from triptych.languages.calling import author_location
from triptych.languages.nki.isa_functions.enums import engine, matmul_perf_mode, perf_mode_name, reduce_cmd
from triptych.languages.nki.language_functions.elementwise import is_number, number, on_chip
from triptych.languages.nki.language_functions.reductions import reduced_shape, trailing_axes
from triptych.languages.nki.tracing import buffers
from triptych.languages.nki.tracing.dtypes import float32, nki_dtype, promote
from triptych.languages.nki.tracing.indexing import refuse
from triptych.languages.nki.tracing.registers import VirtualRegister
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import TileOrNumber, Tracer

Arguments = Mapping[str, Any]
Result = Callable[[Tracer, Arguments, object], NkiTensor]
"""(tracer, bound arguments, dtype) -> the new tile of Beta 1's form."""


def unsupported(function: str, **given: object) -> None:
    """Refuse arguments that change the meaning in a way that is not implemented; what is not set is nothing of theirs.

    Raises:
        UnsupportedFeature: for the first one that is set.
    """
    for name, value in given.items():
        if value not in (None, False, (), matmul_perf_mode.none):
            raise UnsupportedFeature(f"nisa.{function}({name}={value!r}) is not implemented", where=author_location())


def operand(value: object, what: str) -> TileOrNumber | None:
    """A tile, a number, or None."""
    if type(value) is float:
        return value
    if value is None or isinstance(value, NkiTensor | VirtualRegister):
        return value
    if is_number(value):
        return number(value)
    raise refuse(f"{what}: expected a tile or a number, got {type(value).__name__}")


def tensor_of(value: object, what: str) -> NkiTensor:
    """`value`, which must be a tensor."""
    if not isinstance(value, NkiTensor):
        raise refuse(f"{what}: expected a tensor, got {type(value).__name__}")
    return value


def command_name(value: object, name: str) -> str:
    """The name of a `nisa.reduce_cmd`.

    Raises:
        NkiError: for anything else; integers and strings are none.
    """
    if not isinstance(value, reduce_cmd):
        raise refuse(f"{name}={value!r} is no reduce_cmd", "name one, such as nisa.reduce_cmd.reset_reduce")
    return value.name


def like(*names: str) -> Result:
    """A new SBUF tile of the shape of the first operand, of the dtype that all of them are computed to."""

    def result(tracer: Tracer, arguments: Arguments, dtype: object) -> NkiTensor:
        tiles = [on_chip(arguments[name], name) for name in names]
        default = tiles[0].dtype
        for tile in tiles[1:]:
            default = promote(default, tile.dtype)
        return tracer.allocate(tiles[0].shape, default if dtype is None else nki_dtype(dtype), buffers.sbuf)

    return result


def columns(name: str, count: int, dtype_name: str | None = None) -> Result:
    """A new SBUF tile of `count` elements for each partition of the operand, of its dtype or of the one named."""

    def result(tracer: Tracer, arguments: Arguments, dtype: object) -> NkiTensor:
        tile = on_chip(arguments[name], name)
        default = tile.dtype if dtype_name is None else nki_dtype(dtype_name)
        return tracer.allocate((tile.shape[0], count), default if dtype is None else nki_dtype(dtype), buffers.sbuf)

    return result


def one_partition(tracer: Tracer, arguments: Arguments, dtype: object) -> NkiTensor:
    """A new SBUF tile of one partition, like those of the data."""
    data = on_chip(arguments["data"], "data")
    shape = (1, *data.shape[1:])
    return tracer.allocate(shape, data.dtype if dtype is None else nki_dtype(dtype), buffers.sbuf)


def product(tracer: Tracer, arguments: Arguments, dtype: object) -> NkiTensor:
    """A new PSUM tile [M, N] for stationary.T @ moving."""
    stationary, moving = on_chip(arguments["stationary"], "stationary"), on_chip(arguments["moving"], "moving")
    rows = 2 if perf_mode_name(arguments["perf_mode"]) == "double_row" else 1
    shape = (stationary.size // stationary.shape[0] // rows, *moving.shape[rows:])
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
