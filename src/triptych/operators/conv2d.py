"""A convolution of pictures."""

from __future__ import annotations

import numpy as np

from triptych.operators.arithmetic import narrow_product, pick
from triptych.operators.budgets import rounding, sums
from triptych.operators.case import Case
from triptych.operators.draw import POSITIVE, standard
from triptych.operators.formula import Formula
from triptych.operators.operator import NOTHING, Array, Arrays, Operator, Outputs, Parameter, Size, Values, Wrong


def _windows(x: Array, size: Values) -> Array:
    """What each place of the output sees, `(batch, h_out · w_out, c_in · r · s)`."""
    r, s, stride, padding = (size[name] for name in ("r", "s", "stride", "padding"))
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (r, s), axis=(2, 3))[:, :, ::stride, ::stride]
    batch, c_in, h_out, w_out = views.shape[:4]
    return views.transpose(0, 2, 3, 1, 4, 5).reshape(batch, h_out * w_out, c_in * r * s)


def _convolved(x: Array, weight: Array, size: Values) -> Array:
    rows = _windows(x, size) @ weight.reshape(len(weight), -1).T
    return _as_pictures(rows, size)


def _as_pictures(rows: Array, size: Values) -> Array:
    h_out = (size["h"] + 2 * size["padding"] - size["r"]) // size["stride"] + 1
    return rows.swapaxes(1, 2).reshape(rows.shape[0], rows.shape[2], h_out, -1)


def _reference(given: Arrays, size: Values) -> Outputs:
    return (_convolved(given["x"], given["weight"], size),)


def _budget(case: Case) -> Outputs:
    x, weight = (np.abs(one) for one in pick(case.given, "x weight"))
    terms = case.size["c_in"] * case.size["r"] * case.size["s"]
    return (rounding(case.truth, case.dtype) + sums(_convolved(x, weight, case.size), terms + 1),)


def _turned(case: Case) -> Outputs:
    """A convolution in the mathematician's sense: the window is turned round."""
    return case.computed(weight=case.given["weight"][:, :, ::-1, ::-1])


def _clamped(case: Case) -> Outputs:
    """Beyond the border lies the border's pixel, not 0."""
    x, weight = pick(case.given, "x weight")
    padding = case.size["padding"]
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), mode="edge")
    inner = {**case.size, "padding": 0}
    rows = _windows(padded, inner) @ weight.reshape(len(weight), -1).T
    return (_as_pictures(rows, case.size),)


def _half_sums(case: Case) -> Outputs:
    x, weight = pick(case.given, "x weight")
    rows = narrow_product(_windows(x, case.size), weight.reshape(len(weight), -1).T, case.dtype)
    return (_as_pictures(rows, case.size),)


_H, _W = "(h+2*padding-r)//stride+1", "(w+2*padding-s)//stride+1"


def _taps(places: str, window: str) -> str:
    """Of all places along a side, the pixels of their windows that are not beyond the border, at least."""
    return f"({places}) * {window} - padding * (padding + 1)"


def _size(name: str, shape: str, source: str) -> Size:
    names = ["batch", "c_in", "h", "w", "c_out", "r", "s", "stride", "padding"]
    return Size(name, dict(zip(names, map(int, shape.split()), strict=True)), source)


CONV2D = Operator(
    name="conv2d",
    computes="y[b, o, i, j] = Σ_{c, r, s} weight[o, c, r, s] x[b, c, stride i + r − padding, stride j + s − padding], 0"
    " beyond the border",
    family="convolution",
    inputs=(
        Parameter("x", "batch c_in h w", "pictures, channel by channel"),
        Parameter("weight", "c_out c_in r s", "a window for each pair of channels"),
    ),
    outputs=(Parameter("y", f"batch c_out {_H} {_W}", "pictures, summed up in f32"),),
    dtypes=("f32", "f16", "bf16"),
    sizes=(
        _size("tiny", "2 8 13 11 6 3 3 2 1", "odd sides, every second place"),
        _size("tiny_same", "1 4 9 10 5 3 3 1 1", "as large a picture as the input"),
        _size("resnet_50_stem", "16 3 224 224 64 7 7 2 3", "ResNet-50: the first convolution, 16 pictures"),
        _size("resnet_50_3x3", "16 64 56 56 64 3 3 1 1", "ResNet-50: a block of the first stage, 16 pictures"),
        _size("vit_b_16_patches", "16 3 224 224 768 16 16 16 0", "ViT-B/16: patches to tokens, 16 pictures"),
    ),
    distributions=(*standard(), POSITIVE),
    reference=_reference,
    budget=_budget,
    derivation="a rounding to T, and c_in r s + 1 roundings of f32 relative to Σ |weight| |x|",
    flops=NOTHING,
    matrix_flops=Formula(f"2 * batch * c_out * c_in * ({_taps(_H, 'r')}) * ({_taps(_W, 's')})"),
    may_do_less="Winograd's convolutions, and those by fast Fourier transforms",
    wrong=(
        Wrong("the window is turned round", _turned),
        Wrong("beyond the border lies the border", _clamped),
        Wrong("sums in half precision", _half_sums),
        Wrong(
            "the last channel is missing",
            lambda case: case.computed(
                x=np.concatenate((case.given["x"][:, :-1], np.zeros_like(case.given["x"][:, :1])), 1)
            ),
        ),
    ),
)
