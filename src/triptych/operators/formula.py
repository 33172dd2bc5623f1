"""Formulas of a size, as `2 * m * n * k`: shapes, least FLOPs and least bytes, to be read and to be computed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.FloorDiv: lambda left, right: left // right,
}
_FUNCTIONS: Mapping[str, Callable[..., int]] = {"min": min, "max": max}


@dataclass(frozen=True, slots=True)
class Formula:
    """An integer formula of a size's names: `+ - * //`, brackets, `min` and `max`."""

    text: str

    def __post_init__(self) -> None:
        """Refuses what is no such formula.

        Raises:
            ValueError: naming the formula.
        """
        self.names()

    def __call__(self, values: Mapping[str, int]) -> int:
        """The formula's value.

        Raises:
            KeyError: for a name that `values` lacks.
        """
        return _value(self._tree(), values)

    def names(self) -> frozenset[str]:
        """The names that it has."""
        names: set[str] = set()

        class Recorder(dict[str, int]):
            def __missing__(self, name: str) -> int:
                names.add(name)
                return 1

        try:
            _value(self._tree(), Recorder())
        except (SyntaxError, TypeError) as problem:
            raise ValueError(f"{self.text!r} is no formula of a size: {problem}") from problem
        return frozenset(names)

    def __str__(self) -> str:
        """As a person writes it: `2 · m · n · k`."""
        return self.text.replace(" // ", " / ").replace(" * ", "·").replace(" - ", " − ")

    def _tree(self) -> ast.expr:
        return ast.parse(self.text, mode="eval").body


def _value(node: ast.expr, values: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(int(value)):
            return value
        case ast.Name(name):
            return values[name]
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand, values)
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            return _OPERATORS[type(operator)](_value(left, values), _value(right, values))
        case ast.Call(ast.Name(name), arguments, []) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(argument, values) for argument in arguments))
        case _:
            raise TypeError(f"{ast.unparse(node)!r} has no meaning here")
