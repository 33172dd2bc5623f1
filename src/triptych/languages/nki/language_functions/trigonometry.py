"""`nki.language`: sin, cos and tan of any argument, reduced to where the Scalar engine's sine holds."""

from __future__ import annotations

import math

from triptych.languages.nki.language_functions.elementwise import activate, binary, copy, on_chip
from triptych.languages.nki.language_functions.elementwise import reciprocal as reciprocal_of
from triptych.languages.nki.language_functions.rounding import nearest
from triptych.languages.nki.tracing.dtypes import float32
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import current
from triptych.neuron.isa.trace import BETA1

# 2 pi in three parts, of which the first two have few bits: their multiples are exact (Cody and Waite).
_TURN = (6.28125, 1.93500518798828125e-3, 2.0 * math.pi - 6.28125 - 1.93500518798828125e-3)


def _reduced(x: NkiTensor, mask: object) -> NkiTensor:
    """X less the nearest multiple of 2 pi, within [-pi, pi], in float32."""
    wide = copy(x, float32, mask=mask)
    turns = nearest(binary("multiply", wide, 0.5 / math.pi, float32, mask), mask)
    for part in _TURN:
        wide = binary("subtract", wide, binary("multiply", turns, part, float32, mask), float32, mask)
    bounded = binary("minimum", wide, math.pi, float32, mask)
    return binary("maximum", bounded, -math.pi, float32, mask)


def _cosine(reduced: NkiTensor, dtype: object, mask: object) -> NkiTensor:
    """sin(pi / 2 - |x|), whose argument stays within [-pi / 2, pi / 2]."""
    shifted = binary("subtract", math.pi / 2, activate("abs", reduced, float32, mask), float32, mask)
    return activate("sin", shifted, dtype, mask)


def sin(x: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """The sine; Beta 1 has the Scalar engine's own, for arguments in [-pi, pi]."""
    data = on_chip(x, "nl.sin")
    if current("nl.sin").generation == BETA1:
        return activate("sin", data, dtype, mask)
    return activate("sin", _reduced(data, mask), data.dtype if dtype is None else dtype, mask)


def cos(x: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """The cosine."""
    data = on_chip(x, "nl.cos")
    return _cosine(_reduced(data, mask), data.dtype if dtype is None else dtype, mask)


def tan(x: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """The tangent: sine over cosine."""
    data = on_chip(x, "nl.tan")
    reduced = _reduced(data, mask)
    inverse = reciprocal_of(_cosine(reduced, float32, mask), float32, mask=mask)
    final = data.dtype if dtype is None else dtype
    return binary("multiply", activate("sin", reduced, float32, mask), inverse, final, mask)
