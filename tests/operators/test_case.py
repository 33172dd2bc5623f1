"""How results are judged: roundings, NaN, infinities, and what is no result at all."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from triptych.core.dtypes import DTYPES
from triptych.core.errors import ArgumentError
from triptych.operators import Case, of_inputs, operator
from triptych.operators.arithmetic import coarse, erf, narrow_sum
from triptych.operators.budgets import chain, limits, rounding

INF, NAN = math.inf, math.nan


def added(a: list[float], b: list[float], dtype: str = "f32") -> Case:
    kind = DTYPES[dtype]
    inputs = {"a": np.array(a, kind.numpy), "b": np.array(b, kind.numpy)}
    return of_inputs(operator("vec_add"), {"n": len(a)}, kind, "mine", inputs)


def error(of: Case, *found: float) -> float:
    return of.error((np.array(found, of.dtype.numpy),))


def test_half_an_ulp_is_allowed_and_no_more() -> None:
    one = added([1.0], [2.0**-24])
    assert error(one, 1.0) == pytest.approx(1, rel=1e-6)
    assert error(one, 1.0 + 2.0**-23) == pytest.approx(1, rel=1e-6)
    assert error(one, 1.0 + 2.0**-22) > 2
    assert error(added([1.0], [2.0]), 3.0) == 0


def test_nan_and_infinities_stand_where_they_belong() -> None:
    one = added([INF, -INF, INF, NAN, 1], [1, 1, -INF, 1, 1])
    assert error(one, INF, -INF, NAN, NAN, 2) == 0
    for place, wrong in [(0, -INF), (0, NAN), (0, 3e38), (2, INF), (2, 0), (3, 1), (4, NAN), (4, INF)]:
        found = [INF, -INF, NAN, NAN, 2]
        found[place] = wrong
        assert error(one, *found) == INF


def test_overflow_is_an_infinity_of_its_sign() -> None:
    one = added([65504.0, -65504.0, 60000.0], [65504.0, -65504.0, 0.0], "f16")
    assert error(one, INF, -INF, 60000.0) == 0
    assert error(one, -INF, -INF, 60000.0) == INF
    assert error(one, INF, -INF, INF) == INF


def test_a_verdict_tells_the_worst_element() -> None:
    one = added([1.0, 2.0, 4.0, NAN], [1.0, 2.0, 4.0, 1.0])
    right = one.verdict((np.array([2, 4, 8, NAN], np.float32),))
    assert right.right
    assert str(right) == "right: the largest error is 0 of what is allowed, at c[0]"
    wrong = one.verdict((np.array([2, 5, 8.001, NAN], np.float32),))
    assert (wrong.right, wrong.wrong, wrong.elements, wrong.output, wrong.index) == (False, 2, 4, "c", (1,))
    assert (wrong.found, wrong.expected) == (5, 4)
    assert str(wrong) == "wrong: 2 of 4 elements; worst is c[1] = 5, expected 4 ± 2.4e-07"
    lost = one.verdict((np.array([2, 4, NAN, NAN], np.float32),))
    assert str(lost) == "wrong: 1 of 4 elements; worst is c[2] = nan, expected 8 ± 4.8e-07"


def test_what_is_no_result() -> None:
    one = added([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(ArgumentError, match="vec_add: got 2 outputs; expected 1"):
        one.error((np.zeros(2, np.float32), np.zeros(2, np.float32)))
    with pytest.raises(ArgumentError, match=r"vec_add: c is float64\[2\]; expected f32\[2\]"):
        one.error((np.zeros(2),))
    with pytest.raises(ArgumentError, match=r"vec_add: c is float32\[3\]; expected f32\[2\]"):
        one.error((np.zeros(3, np.float32),))


@pytest.mark.parametrize(
    ("name", "unit", "largest", "smallest_normal"),
    [
        ("f32", 2.0**-24, (2 - 2.0**-23) * 2.0**127, 2.0**-126),
        ("f16", 2.0**-11, 65504.0, 2.0**-14),
        ("bf16", 2.0**-8, (2 - 2.0**-7) * 2.0**127, 2.0**-126),
        ("f8e4m3fn", 2.0**-4, 448.0, 2.0**-6),
    ],
)
def test_limits(name: str, unit: float, largest: float, smallest_normal: float) -> None:
    found = limits(DTYPES[name])
    assert (found.unit, found.largest, found.smallest_normal) == (unit, largest, smallest_normal)


def test_rounding_covers_what_storing_loses() -> None:
    values = np.concatenate([np.geomspace(1e-12, 6e4, 4000), -np.geomspace(1e-9, 1e3, 1000)])
    for name in ("f32", "f16", "bf16"):
        lost = np.abs(values.astype(DTYPES[name].numpy).astype(np.float64) - values)
        assert (lost <= rounding(values, DTYPES[name])).all()
    assert (rounding(values, DTYPES["s32"]) == 0).all()


def test_roundings_of_sums() -> None:
    assert [chain(terms) for terms in (1, 64, 256, 4096, 1 << 20)] == [1, 64, 128, 512, 131072]


def test_sums_of_positive_terms_in_f32_stay_within_theirs() -> None:
    """The longest chain: one term after the other."""
    for seed in range(3):
        terms = np.random.default_rng(seed).uniform(0.5, 1, 20000).astype(np.float32)
        right = np.cumsum(terms.astype(np.float64))
        roundings = np.array([chain(count) for count in range(1, terms.size + 1)])
        assert (np.abs(np.cumsum(terms) - right) <= roundings * 2.0**-24 * right).all()


def test_coarse() -> None:
    values = np.array([1 + 2.0**-11, 3.0, -1e-30, INF, NAN, 0.0])
    found = coarse(values, 11)
    np.testing.assert_array_equal(found[[0, 1, 3, 4, 5]], [1, 3, INF, NAN, 0])
    np.testing.assert_array_equal(coarse(values, 8)[:3], values[:3].astype(ml_dtypes.bfloat16).astype(np.float64))


def test_narrow_sums_stand_still() -> None:
    """In f16, 2048 + 1 is 2048."""
    assert narrow_sum(np.ones((1, 3000)), DTYPES["f16"]) == 2048
    assert narrow_sum(np.ones((1, 3000)), DTYPES["bf16"]) == 256


def test_erf() -> None:
    np.testing.assert_allclose(erf(np.array([0, 0.5, -2])), [0, 0.5204998778130465, -0.9953222650189527], rtol=1e-15)
