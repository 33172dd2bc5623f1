"""Formulas of a size: values, names and what is refused."""

from __future__ import annotations

import pytest

from triptych.operators.formula import Formula

SIZE = {"m": 5, "n": 3, "k": 7}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("2 * m * n * k", 210),
        ("(m+2*n-k)//2+1", 3),
        ("min(m, n * k) - max(m, 6)", -1),
        ("-(-m // 2)", 3),
    ],
)
def test_values(text: str, value: int) -> None:
    assert Formula(text)(SIZE) == value


def test_names() -> None:
    assert Formula("2 * m * (n - m) // 4 + min(k, 1)").names() == {"m", "n", "k"}


def test_a_name_that_is_missing() -> None:
    with pytest.raises(KeyError, match="rows"):
        Formula("rows * 2")(SIZE)


@pytest.mark.parametrize("text", ["m ** 2", "m / 2", "f(m)", "m if n else k", "1.5 * m", "m n", "", "min(m, key=n)"])
def test_what_is_no_formula(text: str) -> None:
    with pytest.raises(ValueError, match="is no formula of a size"):
        Formula(text)


def test_text() -> None:
    assert str(Formula("2 * m * (n - 1)")) == "2·m·(n − 1)"
