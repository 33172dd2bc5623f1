"""Least FLOPs and bytes against values worked out by hand, and against loops that count."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from triptych.operators import OPERATORS, operator

SIZES: Mapping[str, dict[str, int]] = {
    "vec_add": {"n": 10},
    "elementwise_chain": {"n": 10},
    "swiglu": {"rows": 2, "columns": 5},
    "rope": {"tokens": 3, "heads": 2, "d": 4},
    "transpose": {"rows": 2, "columns": 5},
    "embedding": {"tokens": 3, "vocabulary": 100, "d": 8},
    "reduce_sum": {"rows": 2, "columns": 5},
    "softmax": {"rows": 2, "columns": 5},
    "log_softmax": {"rows": 2, "columns": 5},
    "cross_entropy": {"rows": 2, "columns": 5},
    "rms_norm": {"rows": 2, "columns": 5},
    "rms_norm_backward": {"rows": 2, "columns": 5},
    "layer_norm": {"rows": 2, "columns": 5},
    "layer_norm_backward": {"rows": 2, "columns": 5},
    "matmul": {"m": 2, "n": 3, "k": 4},
    "batched_matmul": {"batch": 5, "m": 2, "n": 3, "k": 4},
    "grouped_matmul": {"rows": 7, "groups": 2, "n": 3, "k": 4},
    "matmul_epilogue": {"m": 2, "n": 3, "k": 4},
    "quantised_matmul": {"m": 2, "n": 3, "k": 4},
    "gelu_linear": {"m": 2, "k": 3},
    "attention": {"batch": 1, "heads": 4, "heads_kv": 2, "n": 3, "n_kv": 5, "d": 8, "causal": 1},
    "attention_varlen": {"tokens": 8, "sequences": 2, "heads": 2, "heads_kv": 1, "d": 8, "causal": 1},
    "attention_backward": {"batch": 1, "heads": 4, "heads_kv": 2, "n": 3, "n_kv": 5, "d": 8, "causal": 0},
    "paged_attention": {"sequences": 2, "heads": 4, "heads_kv": 2, "d": 8, "pool": 99, "page": 4, "pages": 3},
    "topk_routing": {"tokens": 3, "experts": 8, "top_k": 2},
    "moe_matmul": {"tokens": 3, "d": 4, "experts": 100, "n": 5, "top_k": 2},
    "cumsum": {"rows": 2, "columns": 5},
    "mamba_scan": {"batch": 1, "channels": 2, "state": 3, "n": 4},
    "histogram": {"n": 10, "bins": 4},
    "sort": {"n": 10},
    "conv1d_depthwise": {"batch": 1, "channels": 2, "n": 5, "width": 3},
    "conv2d": {"batch": 1, "c_in": 2, "h": 4, "w": 5, "c_out": 3, "r": 3, "s": 3, "stride": 1, "padding": 1},
}
"""One for each operator."""

WORK: Mapping[str, tuple[int, int]] = {
    "vec_add": (10, 3 * 10 * 4),
    "elementwise_chain": (10 * 6, 4 * 10 * 4),  # a b + c: 2; a / (1 + e⁻ᵗ): 3; − c: 1
    "swiglu": (10 * 4, 3 * 10 * 4),  # e⁻ᵗ, a sum, a quotient, a product
    "rope": (12 * 6, 2 * 24 * 4 + 2 * 6 * 4),  # twelve pairs, four products and two sums each
    "transpose": (0, 2 * 10 * 4),
    "embedding": (0, 3 * 4 + 8 * 4 + 24 * 4),  # at least one row of the table
    "reduce_sum": (2 * 4, 10 * 4 + 2 * 4),
    "softmax": (2 * (5 + 5 + 4 + 5), 2 * 10 * 4),  # differences, powers, sums, quotients
    "log_softmax": (2 * (5 + 5 + 4 + 1 + 5), 2 * 10 * 4),
    "cross_entropy": (1 * (5 + 5 + 4 + 1), 5 * 4 + 2 * 8 + 2 * 4),  # a row may have no target
    "rms_norm": (2 * (5 + 4 + 3 + 10), 10 * 4 + 5 * 4 + 10 * 4),  # squares, sums, mean + ε and root, two products
    "rms_norm_backward": (2 * 5 * 7 + (2 + 1) * 5, (3 * 10 + 5 + 2 + 5) * 4),
    "layer_norm": (2 * (4 + 1 + 5 + 5 + 4 + 3 + 15 + 1), (2 * 10 + 2 * 5) * 4),
    "layer_norm_backward": (2 * 5 * 10 + (2 + 1) * 5 + 1 * 5, (3 * 10 + 5 + 2 * 2 + 2 * 5) * 4),
    "matmul": (2 * 24, (8 + 12 + 6) * 4),
    "batched_matmul": (5 * 2 * 24, 5 * (8 + 12 + 6) * 4),
    "grouped_matmul": (7 * 2 * 12, (28 + 24 + 21) * 4 + 3 * 4),
    "matmul_epilogue": (2 * 24 + 6 * 6, (8 + 12 + 3 + 6 + 6) * 4),
    "quantised_matmul": (2 * 24 + 2 * 6, 8 + 12 + (2 + 3) * 4 + 6 * 2),
    "gelu_linear": (2 * 6 + 2 * 5, (6 + 3 + 2 + 2) * 4),
    "attention": (4 * 12 * (2 * 2 * 8 + 3), (2 * 96 + 2 * 80) * 4),  # queries see 3, 4 and 5 keys
    "attention_varlen": (2 * (10 + 10) * (2 * 2 * 8 + 3), (2 * 128 + 2 * 64) * 4 + 3 * 4),  # 1 + 2 + 3 + 4 keys each
    "attention_backward": (4 * 15 * (5 * 2 * 8 + 4), (3 * 96 + 2 * 80 + 12 + 96 + 2 * 80) * 4),
    "paged_attention": (2 * 4 * 6 * (2 * 2 * 8 + 3), (64 + 2 * 2 * 6 * 2 * 8 + 64) * 4 + 6 * 4 + 2 * 4),
    "topk_routing": (3 * (1 + 1 + 1 + 2), 24 * 4 + 6 * 4 + 6 * 4),
    "moe_matmul": (3 * 2 * 2 * 20 + 3 * 5 * 3, (12 + 6 * 20 + 15) * 4 + 6 * 4 + 6 * 4),  # six experts at most
    "cumsum": (2 * 4, 2 * 10 * 4),
    "mamba_scan": (2 * 3 * (7 * 3 + 2), (3 * 8 + 2 * 12 + 6 + 2) * 4),
    "histogram": (0, 10 * 4 + 4 * 4),
    "sort": (0, 4 * 10 * 4),
    "conv1d_depthwise": (2 * 2 * (1 + 2 + 3 + 3 + 3), (2 * 10 + 6 + 2) * 4),  # taps that are not beyond the border
    "conv2d": (2 * 3 * 2 * (2 + 3 + 3 + 2) * (2 + 3 + 3 + 3 + 2), (40 + 54 + 60) * 4),
}
"""FLOPs, and bytes in the first type T (f32, or 8 bits of the quantised product)."""


@pytest.mark.parametrize("name", OPERATORS)
def test_least_work(name: str) -> None:
    one, size = OPERATORS[name], SIZES[name]
    assert (one.least_flops(size), one.least_bytes(size, one.dtype(one.dtypes[0]))) == WORK[name]


@pytest.mark.parametrize("name", OPERATORS)
def test_half_the_type_is_half_of_its_bytes(name: str) -> None:
    one, size = OPERATORS[name], SIZES[name]
    if {"f32", "f16"} <= set(one.dtypes):
        fixed = sum(
            each.elements(size) * each.element(one.dtype("f16")).bytes for each in one.parameters if each.dtype != "T"
        )
        wide, narrow = (one.least_bytes(size, one.dtype(dtype)) - fixed for dtype in ("f32", "f16"))
        assert wide == 2 * narrow


def test_causal_pairs() -> None:
    """A loop over queries and the keys that they see."""
    one = operator("attention")
    for n, n_kv in ((1, 1), (5, 5), (3, 9), (7, 8)):
        for causal in (0, 1):
            size = {"batch": 1, "heads": 1, "heads_kv": 1, "n": n, "n_kv": n_kv, "d": 1, "causal": causal}
            seen = sum(key <= query + n_kv - n or not causal for query in range(n) for key in range(n_kv))
            assert one.matrix_flops(size) == 4 * seen


@pytest.mark.parametrize(
    ("h", "w", "r", "s", "stride", "padding"),
    [(9, 8, 3, 3, 1, 1), (13, 11, 3, 3, 2, 1), (30, 31, 7, 5, 2, 3), (8, 8, 1, 1, 1, 0), (16, 16, 4, 4, 4, 0)],
)
def test_taps_of_a_convolution(h: int, w: int, r: int, s: int, stride: int, padding: int) -> None:
    """Never more than a loop over places and pixels counts, and no fewer where every place is taken."""

    def taps(side: int, window: int) -> int:
        starts = range(-padding, side + padding - window + 1, stride)
        return sum(0 <= start + tap < side for start in starts for tap in range(window))

    size = {"batch": 1, "c_in": 1, "h": h, "w": w, "c_out": 1, "r": r, "s": s, "stride": stride, "padding": padding}
    least = operator("conv2d").matrix_flops(size)
    exact = 2 * taps(h, r) * taps(w, s)
    assert 0 < least <= exact
    assert stride > 1 or least == exact


def test_real_sizes() -> None:
    """An 8 B model's gate projection of 2048 tokens, in bf16."""
    one = operator("matmul")
    size = one.size("llama_3_8b_gate").values
    assert one.least_flops(size) == 240518168576
    assert one.least_bytes(size, one.dtype("bf16")) == 2 * (2048 * 4096 + 4096 * 14336 + 2048 * 14336)


def test_formulas_are_told() -> None:
    assert operator("vec_add").bytes_formula() == "|T|·(3·n)"
    assert operator("gelu_linear").bytes_formula() == "|T|·(m·k + k + 2·m)"
    assert operator("sort").bytes_formula() == "|T|·(2·n) + 4·(2·n)"
