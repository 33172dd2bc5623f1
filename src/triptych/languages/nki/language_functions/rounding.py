"""`nki.language`: rounding to whole numbers, which no engine has: composed of conversions, which round to nearest."""

from __future__ import annotations

from triptych.languages.nki.language_functions.elementwise import activate, binary, copy, on_chip, result_tile
from triptych.languages.nki.tracing.dtypes import float32, int32, uint8
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import Tracer, current

_WHOLE_FROM = 2.0**23
"""From this magnitude on every float32 is a whole number."""


def nearest(x: NkiTensor, mask: object = None) -> NkiTensor:
    """The nearest whole numbers, as float32, of magnitudes below 2^31."""
    return copy(copy(x, int32, mask=mask), float32, mask=mask)


def _rounded(name: str, x: object, dtype: object, mask: object) -> NkiTensor:
    tracer = current(f"nl.{name}")
    data = on_chip(x, f"nl.{name}")
    wide = copy(data, float32, mask=mask)
    whole = nearest(wide, mask)
    if name == "floor":
        result = binary("subtract", whole, binary("greater", whole, wide, float32, mask), float32, mask)
    else:
        result = binary("add", whole, binary("less", whole, wide, float32, mask), float32, mask)
    _keep_large(tracer, wide, result, mask)
    return copy(wide, data.dtype if dtype is None else dtype, mask=mask)


def _keep_large(tracer: Tracer, wide: NkiTensor, result: NkiTensor, mask: object) -> None:
    """Puts the result where the magnitude is small; what is larger is whole already, and NaN stays NaN."""
    small = result_tile(tracer, wide.shape, uint8, uint8)
    size = activate("abs", wide, float32, mask)
    tracer.emit("tensor_scalar", {"dst": small, "data": size, "operand0": _WHOLE_FROM}, {"op0": "less"}, mask=mask)
    tracer.emit("tensor_copy_predicated", {"dst": wide, "src": result, "predicate": small}, mask=mask)


def floor(x: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """The largest whole number that is not above x."""
    return _rounded("floor", x, dtype, mask)


def ceil(x: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """The least whole number that is not below x."""
    return _rounded("ceil", x, dtype, mask)


def trunc(x: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """X without its fraction: the sign of x times the floor of its magnitude."""
    data = on_chip(x, "nl.trunc")
    size = floor(activate("abs", data, float32, mask), float32, mask=mask)
    signs = activate("sign", data, float32, mask)
    return binary("multiply", size, signs, data.dtype if dtype is None else dtype, mask)
