"""A causal convolution along the sequence, for each channel by itself: Mamba's."""

from __future__ import annotations

import numpy as np

from triptych.operators.arithmetic import pick
from triptych.operators.budgets import rounding, sums
from triptych.operators.case import Case
from triptych.operators.draw import standard
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def _convolved(x: Array, weight: Array, bias: Array) -> Array:
    width, n = weight.shape[1], x.shape[2]
    padded = np.pad(x, ((0, 0), (0, 0), (width - 1, 0)))
    result = np.zeros_like(x) + bias[:, None]
    for tap in range(width):
        result = result + weight[:, tap, None] * padded[..., tap : tap + n]
    return result


def _reference(given: Arrays, size: Values) -> Outputs:
    return (_convolved(*pick(given, "x weight bias")),)


def _budget(case: Case) -> Outputs:
    terms = _convolved(*(np.abs(one) for one in pick(case.given, "x weight bias")))
    return (rounding(case.truth, case.dtype) + sums(terms, case.size["width"] + 2),)


def _looking_ahead(case: Case) -> Outputs:
    """The window ends behind the element, not at it."""
    x, weight, bias = pick(case.given, "x weight bias")
    ahead = weight.shape[1] - 1
    return (_convolved(np.pad(x, ((0, 0), (0, 0), (0, ahead))), weight, bias)[..., ahead:],)


def _by_tiles(case: Case) -> Outputs:
    """A tile does not see the one before."""
    x, weight, bias = pick(case.given, "x weight bias")
    tiles = [_convolved(x[..., at : at + 16], weight, bias) for at in range(0, x.shape[2], 16)]
    return (np.concatenate(tiles, -1),)


CONV1D_DEPTHWISE = Operator(
    name="conv1d_depthwise",
    computes="y[b, c, t] = bias[c] + Σ_j weight[c, j] x[b, c, t − width + 1 + j], 0 before the first element",
    family="convolution",
    inputs=(
        Parameter("x", "batch channels n", "sequences"),
        Parameter("weight", "channels width", "a window for each channel"),
        Parameter("bias", "channels", "a term for each channel"),
    ),
    outputs=(Parameter("y", "batch channels n", "the same, convolved"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        Size("tiny", {"batch": 2, "channels": 6, "n": 51, "width": 4}, "no multiples of anything"),
        Size(
            "mamba_130m",
            {"batch": 8, "channels": 1536, "n": 2048, "width": 4},
            "Mamba 130M: 1536 channels, windows of 4, 8 sequences of 2048 tokens",
        ),
        Size(
            "mamba_2_8b",
            {"batch": 1, "channels": 5120, "n": 2048, "width": 4},
            "Mamba 2.8B: 5120 channels, windows of 4, 2048 tokens",
        ),
    ),
    distributions=standard(),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T, and width + 2 roundings of f32 relative to |bias| + Σ |weight| |x|",
    flops=Formula("2 * batch * channels * (n * width - width * (width - 1) // 2)"),
    may_do_less="Winograd's convolutions, and those by fast Fourier transforms",
    wrong=(
        Wrong("the window ends behind the element", _looking_ahead),
        Wrong("the window is turned round", lambda case: case.computed(weight=case.given["weight"][:, ::-1])),
        Wrong("tiles do not see the ones before", _by_tiles),
        Wrong("without the bias", lambda case: case.computed(bias=np.zeros_like(case.given["bias"]))),
        Wrong("the next channel's window", lambda case: case.computed(weight=np.roll(case.given["weight"], 1, 0))),
    ),
)
