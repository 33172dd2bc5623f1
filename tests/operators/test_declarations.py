"""What every declaration must have: sizes that fill its formulas, inputs of the shapes and types that it says."""

from __future__ import annotations

import numpy as np
import pytest

from triptych.core.errors import UnknownName
from triptych.operators import OPERATORS, case, operator


@pytest.mark.parametrize("name", OPERATORS)
def test_sizes_have_the_names_of_the_formulas(name: str) -> None:
    one = OPERATORS[name]
    formulas = (one.flops, one.matrix_flops, *(each.elements for each in one.parameters))
    names = {name for formula in formulas for name in formula.names()}
    for size in one.sizes:
        assert names <= set(size.values), size.name
        assert len(size.source) > 5
        assert all(isinstance(value, int) and value >= 0 for value in size.values.values())
        assert one.least_flops(size.values) >= 0
        for dtype in one.dtypes:
            moved = one.least_bytes(size.values, one.dtype(dtype))
            held = sum(
                int(np.prod(each.shape(size.values))) * each.element(one.dtype(dtype)).bytes for each in one.parameters
            )
            assert 0 < moved <= held


@pytest.mark.parametrize("name", OPERATORS)
def test_declarations_are_whole(name: str) -> None:
    one = OPERATORS[name]
    assert one.name == name
    assert len(one.sizes) >= 2
    assert len(one.distributions) >= 3
    for rows in (one.sizes, one.distributions, one.parameters, one.wrong):
        assert len({each.name for each in rows}) == len(rows)
    texts = [one.computes, one.derivation, *(each.meaning for each in (*one.parameters, *one.distributions))]
    assert all(text.strip() == text and not text.endswith(".") and text for text in texts)


@pytest.mark.parametrize("name", OPERATORS)
def test_inputs_are_what_was_declared(name: str) -> None:
    one = OPERATORS[name]
    for dtype in {one.dtypes[0], one.dtypes[-1]}:
        for distribution in one.distributions:
            made = case(one, "tiny", dtype, distribution.name, 3)
            assert list(made.inputs) == [each.name for each in one.inputs]
            for each in one.inputs:
                assert made.inputs[each.name].shape == each.shape(made.size)
                assert made.inputs[each.name].dtype == each.element(made.dtype).numpy
            for each, expected, allowed in zip(one.outputs, made.expected, made.allowed, strict=True):
                assert expected.shape == allowed.shape == each.shape(made.size)


def test_inputs_follow_from_the_seed() -> None:
    first, again, other = (case(operator("softmax"), "tiny", "f16", "normal", seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.inputs["x"], again.inputs["x"])
    assert (first.inputs["x"] != other.inputs["x"]).mean() > 0.9


def test_small_sizes_are_right_too() -> None:
    """The others that are small enough to be run."""
    for one in OPERATORS.values():
        for size in one.sizes[1:]:
            if max(np.prod(each.shape(size.values)) for each in one.parameters) <= 1 << 13:
                for distribution in one.distributions:
                    made = case(one, size.name, one.dtypes[0], distribution.name)
                    assert made.error(made.stored(made.computed())) <= 1, (one.name, size.name)


def test_unknown_names() -> None:
    with pytest.raises(UnknownName, match="unknown operator 'softmx'"):
        operator("softmx")
    with pytest.raises(UnknownName, match="size of matmul 'huge'"):
        case(operator("matmul"), "huge", "f32", "normal")
    with pytest.raises(UnknownName, match="dtype of matmul 's8'"):
        case(operator("matmul"), "tiny", "s8", "normal")
    with pytest.raises(UnknownName, match="distribution of matmul 'odd'"):
        case(operator("matmul"), "tiny", "f32", "odd")
