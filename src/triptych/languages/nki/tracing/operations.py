"""`op=`: the functions and names by which authors choose an operation of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import FunctionType

import numpy as np

from triptych.core.errors import UnknownName
from triptych.languages.calling import author_location
from triptych.languages.nki.tracing.indexing import refuse
from triptych.neuron.isa.alu import ABSENT, ALU
from triptych.neuron.isa.functions import FUNCTIONS

# numpy's and the language's names of operations, where they differ from the engine's.
_SYNONYMS: Mapping[str, str] = {
    "max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum", "sum": "add", "prod": "multiply",
    "mul": "multiply", "sub": "subtract", "true_divide": "divide", "remainder": "mod",
    "reciprocal_sqrt": "rsqrt", "absolute": "abs",
}  # fmt: skip
_STRINGS_HINT = "give the function, such as nl.add or np.add"


class Marker:
    """An operation that is none of an engine's: `nl.bypass` (nothing), `nl.prelu`, `nl.average`."""

    __slots__ = ("__name__",)

    def __init__(self, name: str) -> None:
        """The marker of that name."""
        self.__name__ = name

    def __repr__(self) -> str:
        """The name that authors use."""
        return f"nl.{self.__name__}"


average = Marker("average")
prelu = Marker("prelu")
bypass = Marker("bypass")


def is_marker(operation: object, name: str) -> bool:
    """Whether `op=` is the marker of that name."""
    return isinstance(operation, Marker) and operation.__name__ == name


def _name(operation: object) -> str:
    if isinstance(operation, np.ufunc):
        return operation.__name__
    if isinstance(operation, Marker):
        return operation.__name__
    if isinstance(operation, str) or not callable(operation):
        raise refuse(f"op={operation!r} is no operation", _STRINGS_HINT)
    return str(getattr(operation, "__name__", operation))


def _is_plain(operation: object) -> bool:
    """Whether it is one and the same operation whenever it is named."""
    return type(operation) is FunctionType or type(operation) is np.ufunc


def alu_name(operation: object) -> str:
    """The engine's name of `op=`; operations that no engine has are refused when the instruction is verified.

    Raises:
        NkiError: for something that is no operation.
        UnknownName: for a function that is none of the engine's.
    """
    return _known_alu_name(operation) if _is_plain(operation) else _alu_name(operation)


def _alu_name(operation: object) -> str:
    name = _name(operation)
    name = _SYNONYMS.get(name, name)
    if name not in ALU and name not in ABSENT:
        raise UnknownName.of("operation", name, ALU, author_location())
    return name


def function_name(operation: object) -> str:
    """The Scalar engine's name of an activation function.

    Raises:
        NkiError: for something that is no function.
        UnknownName: for a function that the engine does not have.
    """
    return _known_function_name(operation) if _is_plain(operation) else _function_name(operation)


def _function_name(operation: object) -> str:
    name = _name(operation)
    name = _SYNONYMS.get(name, name)
    if name not in FUNCTIONS:
        raise UnknownName.of("activation function", name, FUNCTIONS, author_location())
    return name


_known_alu_name = lru_cache(1024)(_alu_name)
_known_function_name = lru_cache(1024)(_function_name)
