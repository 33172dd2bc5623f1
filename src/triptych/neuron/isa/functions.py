"""The functions of the Scalar engine's activation instruction, each computed in float64 and rounded once to float32.

The hardware evaluates piecewise polynomials whose errors are not published; they approximate these functions.
Source of the names and valid ranges: the table of activation functions of the NKI reference (nki.api.shared).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa import compiled
from triptych.neuron.isa.error_function import Doubles, erf, erfc

_ROOT_TWO = math.sqrt(2.0)
_ROOT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
_GELU_CUBIC = 0.044715
_GELU_SIGMOID = 1.702


@dataclass(frozen=True, slots=True)
class Function:
    """An activation function and the magnitudes for which the hardware's approximation holds (None: all)."""

    name: str
    meaning: Callable[[Doubles], Doubles]
    valid: tuple[float, float] | None = None
    native: Callable[..., NDArray[np.float32]] | None = None
    """The same of large tiles, faster: `compiled.exp` says of what and where to."""

    def __call__(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """The function of each value."""
        if self.works_natively(values):
            assert self.native is not None
            return self.native(values)
        return self.meaning(values.astype(np.float64)).astype(np.float32)

    def works_natively(self, values: NDArray[Any]) -> bool:
        """Whether a tile [P, N] is so large that native code is worthwhile, and there is some."""
        return self.native is not None and values.ndim == 2 and values.size >= compiled.WORTHWHILE


def _sigmoid(x: Doubles) -> Doubles:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def _times(x: Doubles, factor: Doubles) -> Doubles:
    """x * factor, where a factor of 0 wins over an infinite x (the tails of the gated functions)."""
    return np.where(factor == 0, 0.0, x * factor)


def _normal(x: Doubles) -> Doubles:
    return 0.5 * erfc(-x / _ROOT_TWO)


def _gelu(x: Doubles) -> Doubles:
    return _times(x, _normal(x))


def _gelu_derivative(x: Doubles) -> Doubles:
    return _normal(x) + _times(x, np.exp(-0.5 * x * x) / _ROOT_TWO_PI)


def _gelu_tanh(x: Doubles) -> Doubles:
    return _times(x, 0.5 * (1.0 + np.tanh(_ROOT_TWO_OVER_PI * (x + _GELU_CUBIC * x * x * x))))


def _gelu_sigmoid(x: Doubles) -> Doubles:
    return _times(x, _sigmoid(_GELU_SIGMOID * x))


def _gelu_sigmoid_derivative(x: Doubles) -> Doubles:
    gate = _sigmoid(_GELU_SIGMOID * x)
    return gate + _times(_GELU_SIGMOID * x, gate * (1.0 - gate))


def _silu(x: Doubles) -> Doubles:
    return _times(x, _sigmoid(x))


def _silu_derivative(x: Doubles) -> Doubles:
    gate = _sigmoid(x)
    return gate + _times(x, gate * (1.0 - gate))


def _softplus(x: Doubles) -> Doubles:
    return np.logaddexp(0.0, x)


def _mish(x: Doubles) -> Doubles:
    return _times(x, np.tanh(_softplus(x)))


def _erf_derivative(x: Doubles) -> Doubles:
    return 2.0 / math.sqrt(math.pi) * np.exp(-x * x)


def _sine(x: Doubles) -> Doubles:
    """Outside of [-pi, pi] the engine goes on with a cubic: sin(9) is 27.65. Source: nki.api.shared of NKI 0.6."""
    beyond = np.abs(x) - math.pi
    return np.where(beyond > 0, np.sign(x) * (beyond**3 / 6.0 - beyond), np.sin(x))


def _functions() -> Mapping[str, Function]:
    rows = [
        Function("copy", lambda x: x),
        Function("square", np.square),
        Function("sigmoid", _sigmoid),
        Function("relu", lambda x: np.maximum(x, 0.0)),
        Function("gelu", _gelu),
        Function("gelu_dx", _gelu_derivative),
        Function("gelu_apprx_tanh", _gelu_tanh),
        Function("gelu_apprx_sigmoid", _gelu_sigmoid),
        Function("gelu_apprx_sigmoid_dx", _gelu_sigmoid_derivative),
        Function("silu", _silu),
        Function("silu_dx", _silu_derivative),
        Function("tanh", np.tanh),
        Function("softplus", _softplus),
        Function("mish", _mish),
        Function("erf", erf),
        Function("erf_dx", _erf_derivative),
        Function(
            "exp", np.exp, native=lambda *given: compiled.exp(*given)
        ),  # looked up when it is called: imported then
        Function("sign", np.sign),
        Function("abs", np.abs),
        Function("log", np.log, (2.0**-64, 2.0**64)),
        Function("sin", _sine, (0.0, math.pi)),
        Function("arctan", np.arctan, (0.0, math.pi / 2)),
        Function("sqrt", np.sqrt, (2.0**-116, 2.0**118)),
        Function("rsqrt", lambda x: 1.0 / np.sqrt(x), (2.0**-87, 2.0**97)),
        Function("reciprocal", lambda x: 1.0 / x, (2.0**-42, 2.0**42)),
    ]
    return {row.name: row for row in rows}


FUNCTIONS: Mapping[str, Function] = _functions()
