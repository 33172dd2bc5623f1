"""What an operator is: a declaration of what a kernel must compute, how exactly, and with how little work.

A file of this folder declares an operator (or a few that share a reference); `catalogue.py` lists them, `case.py` makes
inputs of a declaration and judges results by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from triptych.core.dtypes import DType, dtype_of
from triptych.core.errors import UnknownName
from triptych.operators.formula import Formula

if TYPE_CHECKING:
    from triptych.operators.case import Case
    from triptych.operators.draw import Draw

_Named = TypeVar("_Named")

Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = Mapping[str, Array]
"""Arrays by their parameters' names."""
Values: TypeAlias = Mapping[str, int]
"""A size's integers by name."""
Outputs: TypeAlias = tuple[Array, ...]
"""One array for each of an operator's outputs, in order."""


NOTHING = Formula("0")


@dataclass(frozen=True, slots=True)
class Parameter:
    """An array that a kernel takes: an input, or an output that it fills."""

    name: str
    axes: str
    """Its axes, slowest first, with blanks between: names of the size or formulas without blanks, as `n+1`."""
    meaning: str
    dtype: str = "T"
    """The element type's name; `T` is the one that the case has."""
    least: str = ""
    """How many elements a kernel cannot but load or store, as a formula; all of them where empty."""

    def shape(self, size: Values) -> tuple[int, ...]:
        """Its shape at a size."""
        return tuple(Formula(axis)(size) for axis in self.axes.split())

    def element(self, dtype: DType) -> DType:
        """Its element type where T is `dtype`."""
        return dtype if self.dtype == "T" else dtype_of(self.dtype)

    @property
    def elements(self) -> Formula:
        """How many elements a kernel cannot but load or store."""
        return Formula(self.least or " * ".join(one if one.isidentifier() else f"({one})" for one in self.axes.split()))


@dataclass(frozen=True, slots=True)
class Size:
    """A named size: an integer for each name in the formulas. A kernel's host side may see them all."""

    name: str
    values: Values
    source: str
    """Where the integers come from: a public model, or what a test of this size is for."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Where a kind of inputs comes from."""

    name: str
    meaning: str
    make: Callable[[Draw], Mapping[str, Any]]
    """The values of each input, as numbers of any type; they are rounded to the parameters' types."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """A wrong variant, which the budget must not let pass."""

    name: str
    compute: Callable[[Case], Outputs]
    dtypes: tuple[str, ...] = ()
    """The types T that it is a mistake in; all where empty."""


@dataclass(frozen=True, slots=True)
class Operator:
    """What a kernel must compute, said once: it takes `inputs` in this order and fills `outputs`, which come last.

    A reference computes in the floating-point type of what it is given: on float64 it is the truth, on float32 what a
    kernel with no mistakes but roundings computes. A budget is an absolute error for each element of each output.
    FLOPs count additions, products, quotients, roots and transcendental functions as one each, comparisons as none.
    """

    name: str
    computes: str
    """In one line, as a formula where there is one."""
    family: str
    """The kind of operator, for listings."""
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    dtypes: tuple[str, ...]
    """The types that T may be."""
    sizes: tuple[Size, ...]
    """The first is tiny: tests run it."""
    distributions: tuple[Distribution, ...]
    """The first is the ordinary one."""
    reference: Callable[[Arrays, Values], Outputs]
    budget: Callable[[Case], Outputs]
    derivation: str
    """Of the budget: what may be rounded, and how often."""
    flops: Formula
    """The least FLOPs of plain arithmetic."""
    matrix_flops: Formula = NOTHING
    """The least FLOPs that matrix units can carry out, in type T."""
    fused_flops: Formula | None = None
    """The least FLOPs of plain arithmetic where a function of several operations is one (a NeuronCore's engines have
    GELU, SiLU, the logistic function, and statistics of rows); the same as `flops` where it is None."""
    may_do_less: str = ""
    """The better mathematics by which a kernel may do with fewer FLOPs (Winograd's convolutions); none where empty."""
    wrong: tuple[Wrong, ...] = ()
    constants: Mapping[str, float] = field(default_factory=dict[str, float])
    """Numbers that kernels have built in, by the names that host functions take them by: `epsilon`."""
    arguments: Callable[[Values], Any] | None = None
    """How host code is called on the inputs at a size, where that is not one after the other: a format's own."""
    text_digest: str = ""
    """The SHA-256 of the text that it was made from, where that is not the catalogue: two problems may share a name."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Inputs, then outputs: the order of a kernel's arguments."""
        return self.inputs + self.outputs

    def size(self, name: str) -> Size:
        """The size of that name.

        Raises:
            UnknownName: where there is none.
        """
        return _named(f"size of {self.name}", name, {one.name: one for one in self.sizes})

    def distribution(self, name: str) -> Distribution:
        """The distribution of that name.

        Raises:
            UnknownName: where there is none.
        """
        return _named(f"distribution of {self.name}", name, {one.name: one for one in self.distributions})

    def dtype(self, name: str) -> DType:
        """The element type of that name, if T may be it.

        Raises:
            UnknownName: where it may not.
        """
        return dtype_of(_named(f"dtype of {self.name}", name, {one: one for one in self.dtypes}))

    def least_flops(self, size: Values, machine: str = "gpu") -> int:
        """FLOPs that no kernel of a machine can do without, of plain arithmetic and of matrix units together."""
        return self.plain_flops(size, machine) + self.matrix_flops(size)

    def plain_flops(self, size: Values, machine: str = "gpu") -> int:
        """Those of plain arithmetic alone."""
        fused = self.fused_flops if machine == "neuron" else None
        return (fused or self.flops)(size)

    def least_bytes(self, size: Values, dtype: DType) -> int:
        """Bytes that every kernel moves from and to memory, each once."""
        return sum(one.elements(size) * one.element(dtype).bytes for one in self.parameters)

    def lengths(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int] | None:
        """The integers of a size that inputs of these shapes have, or None where no size has such inputs.

        Args:
            shapes: by inputs' names; those that are left out may have any.
        """
        found: dict[str, int] = {}
        rows = [(one.axes.split(), shapes[one.name]) for one in self.inputs if one.name in shapes]
        if any(len(axes) != len(shape) for axes, shape in rows):
            return None
        pairs = [pair for axes, shape in rows for pair in zip(axes, shape, strict=True)]
        for axis, length in sorted(pairs, key=lambda pair: not pair[0].isidentifier()):
            if axis.isidentifier():
                found.setdefault(axis, length)
            elif len(unknown := Formula(axis).names() - set(found)) == 1:  # as of `sequences+1`
                found[next(iter(unknown))] = length - Formula(axis)({**found, next(iter(unknown)): 0})
            if Formula(axis).names() - set(found) or Formula(axis)(found) != length:
                return None
        return found

    def bytes_formula(self) -> str:
        """`least_bytes` as a person writes it: bytes of an element, times elements. `|T|` is T's bytes."""
        groups: dict[str, dict[str, int]] = {}
        for one in self.parameters:
            terms = groups.setdefault("|T|" if one.dtype == "T" else str(dtype_of(one.dtype).bytes), {})
            terms[str(one.elements)] = terms.get(str(one.elements), 0) + 1
        return " + ".join(f"{width}·({_sum(terms)})" for width, terms in groups.items())


def _named(kind: str, name: str, known: Mapping[str, _Named]) -> _Named:
    if name not in known:
        raise UnknownName.of(kind, name, known)
    return known[name]


def _sum(terms: Mapping[str, int]) -> str:
    return " + ".join(f"{times}·{term}" if times > 1 else term for term, times in terms.items())


def is_integer(array: Array) -> bool:
    """Whether elements are integers."""
    return bool(np.issubdtype(array.dtype, np.integer))


def wide(array: Array) -> Array:
    """Numbers in float64, integers in int64."""
    return array.astype(np.int64 if is_integer(array) else np.float64)
