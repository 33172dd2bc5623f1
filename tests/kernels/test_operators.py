"""Kernels against the operators that they carry out: float64 references, errors allowed by element, every distribution.

A kernel is compiled once for each element type, which takes longer than all its runs: most of the GPU's are run in f32
alone, some in the narrower types, NKI's in all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from operator_cases import check_operator

import triptych as tt
from triptych.kernels import cuda, nki, triton
from triptych.kernels.catalogue import KERNELS, OwnKernel, kernels_of
from triptych.operators import operator

Function = Callable[..., Any]
LANGUAGES: Mapping[str, object] = {"cuda": cuda, "triton": triton, "nki": nki}
SMALL = ("tiny", "tiny_full", "ragged", "one_row")
"""The names of sizes that take little time, where an operator has them."""
WITH_TESTS_OF_THEIR_OWN = frozenset(
    {
        *(f"cuda.matmul_{kind}" for kind in ("naive", "tiled", "wmma", "mma", "wgmma")),
        *("cuda.attention_mma", "cuda.attention_wgmma"),
        *("triton.matmul", "triton.persistent_matmul", "triton.attention", "triton.attention_backward"),
    }
)
"""Kernels of products of matrices on a GPU: in the types that tensor cores take, and with what they do not take."""
RUN = {
    place: one
    for place, one in KERNELS.items()
    if one.operator is not None and one.as_operator and place not in WITH_TESTS_OF_THEIR_OWN
}
IN_NKI = [(place, dtype) for place, one in RUN.items() for dtype in one.dtypes if one.language == "nki"]
NARROW: list[tuple[Function, str]] = [
    (cuda.vec_add, "f16"),
    (cuda.swiglu, "bf16"),
    (cuda.rms_norm, "bf16"),
    (cuda.transpose, "f16"),
    (triton.swiglu, "f16"),
    (triton.rms_norm, "bf16"),
]


def check(one: OwnKernel, dtype: str, most: int | None = None) -> None:
    """At the small sizes of the operator, or the last ones of them."""
    assert one.operator is not None
    sizes = [size.name for size in operator(one.operator).sizes if size.name in SMALL]
    assert sizes, f"{one.operator} has no size that takes little time"
    function = getattr(LANGUAGES[one.language], one.function)
    check_operator(function, one.operator, dtype, *sizes[-(most or len(sizes)) :], chip=one.chip)


@pytest.mark.parametrize("place", [place for place, one in RUN.items() if one.language != "nki"])
def test_on_a_gpu(place: str) -> None:
    check(RUN[place], RUN[place].dtypes[0], 1 if RUN[place].language == "triton" else None)  # it compiles each anew


@pytest.mark.parametrize(("place", "dtype"), IN_NKI)
def test_in_nki(place: str, dtype: str) -> None:
    check(RUN[place], dtype)


def test_the_catalogue_names_all() -> None:
    """Each function of each language, once; at most one is a reference; what is named here is there."""
    for name, language in LANGUAGES.items():
        listed: list[str] = getattr(language, "__all__", [])
        assert {one.function for one in KERNELS.values() if one.language == name} == set(listed)
        assert all(getattr(language, one).__doc__ for one in listed)
    for one in KERNELS.values():
        if one.operator is not None:
            assert set(one.dtypes) <= set(operator(one.operator).dtypes)
            assert sum(other.reference for other in kernels_of(one.operator, one.language)) <= 1
            assert (one.as_operator and not one.reads_values) or not one.reference
    assert set(KERNELS) > WITH_TESTS_OF_THEIR_OWN


@pytest.mark.parametrize(("function", "dtype"), NARROW, ids=lambda one: getattr(one, "__name__", None))
def test_narrow_types_on_a_gpu(function: Function, dtype: str) -> None:
    check_operator(function, function.__name__, dtype, "tiny")


def test_sums_of_long_rows_take_two_launches() -> None:
    x = np.random.default_rng(0).standard_normal((2, 40_000)).astype(np.float32)
    with tt.profile(chip="h100") as profile:
        sums = cuda.reduce_sum(x)
    assert [launch.grid for launch in profile.launches] == [(3, 2, 1), (1, 2, 1)]
    np.testing.assert_allclose(sums, x.astype(np.float64).sum(1), atol=40_000**0.5 * 2.0**-18)


def test_packs_where_arrays_lie_for_them() -> None:
    """16 bytes an access, an element where an array begins elsewhere; results do not differ."""
    a, b = np.random.default_rng(0).standard_normal((2, 1024)).astype(np.float32)
    requests: list[float] = []
    for left, right in ((a, b), (a[1:], b[1:])):
        with tt.profile(chip="h100") as profile:
            assert (cuda.vec_add(left, right) == left + right).all()
        requests.append(profile.launches[0].counters.value("global.load.requests"))
    assert requests == [2 * 1024 / 4 / 32, 2 * 1024 / 32]


def test_results_are_of_the_kind_of_the_inputs() -> None:
    x = np.random.default_rng(0).standard_normal((7, 77)).astype(np.float32)
    of_torch, of_ours = cuda.softmax(torch.tensor(x)), cuda.softmax(tt.empty(x.shape, "f32").copy_(x))
    assert isinstance(of_torch, torch.Tensor)
    assert isinstance(of_ours, tt.Array)
    np.testing.assert_array_equal(of_torch.numpy(), of_ours.numpy())


F32 = np.float32
REFUSED: list[tuple[Function, list[tuple[tuple[int, ...], Any]], str]] = [
    (
        cuda.vec_add,
        [((3, 4), F32), ((4, 3), F32)],
        r"a f32\[3, 4\], b f32\[4, 3\]; expected one shape and",
    ),
    (triton.vec_add, [((3,), F32), ((3,), np.float16)], "expected one shape and element type"),
    (cuda.swiglu, [((3,), np.int32), ((3,), np.int32)], r"gate is s32\[3\]; expected bf16 or f16 or f32"),
    (triton.gelu_linear, [((3, 4), F32), ((3,), F32), ((3,), F32)], r"expected w \(m, k\), x \(k\), b \(m\)"),
    (cuda.softmax, [((3,), F32)], r"x is f32\[3\]; expected the axes \(rows, columns\)"),
    (cuda.rms_norm, [((3, 4), F32), ((4,), np.float16)], r"weight f16\[4\]; expected .* of one element type"),
    (triton.layer_norm, [((3, 4), F32), ((4,), F32), ((3,), F32)], r"bias f32\[3\]; expected x \(rows, columns\)"),
    (
        cuda.rope,
        [((3, 2, 8), F32), ((3, 8), F32), ((3, 8), F32)],
        r"expected .*cos \(tokens, d//2\)",
    ),
    (
        triton.cross_entropy,
        [((3, 4), F32), ((4,), np.int64)],
        r"targets s64\[4\]; expected logits \(rows, columns\), targets \(rows\)",
    ),
    (cuda.cross_entropy, [((3, 4), F32), ((3,), np.int32)], r"targets is s32\[3\]; expected s64"),
]


@pytest.mark.parametrize(("function", "arrays", "message"), REFUSED)
def test_refused(function: Function, arrays: list[tuple[tuple[int, ...], Any]], message: str) -> None:
    with pytest.raises(tt.ArgumentError, match=f"{function.__name__}: .*{message}"):
        function(*(np.zeros(shape, dtype) for shape, dtype in arrays))
