"""An operator of a function of tensors: its reference in float64, and a budget that follows from what it rounds."""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from triptych.core.dtypes import DTYPES, DType
from triptych.core.errors import UnsupportedFeature
from triptych.execution.torch_tensors import TORCH_DTYPES
from triptych.judge.capture.request import Arguments, ArraySpec
from triptych.judge.problems.roundings import Roundings, roundings_of
from triptych.operators.budgets import UNIT, limits, rounding
from triptych.operators.case import Case
from triptych.operators.draw import Draw
from triptych.operators.formula import Formula
from triptych.operators.operator import Array, Arrays, Distribution, Operator, Outputs, Parameter, Size, Values

torch: Any = import_module("torch")

Tensors = Mapping[str, Any]
_POINTWISE = 16
"""Roundings to f32 that an operator of each element (exp, tanh, a division) may be worth on a GPU, generously."""
_WIDE = {"f64", "f32", "f16", "bf16", "f8e4m3fn", "f8e5m2"}


@dataclass(frozen=True, slots=True)
class Reference:
    """A problem as its author wrote it."""

    name: str
    computes: str
    source: str
    """Where it comes from, in one line."""
    draw: Callable[[int], Tensors]
    """The inputs of a seed, by name, as tensors of the host."""
    compute: Callable[[Tensors], Sequence[Any]]
    """The outputs of inputs, which are of the problem's own types, or all floats wider; it leaves them as they are."""
    arguments: Arguments
    """How a candidate is called on the inputs."""
    size: Mapping[str, int]
    """What the host may see beside shapes."""
    texts: Sequence[str]
    """All that its author wrote: what tells it from others of its name."""
    optional: frozenset[str] = frozenset()
    """Inputs that need not be read."""


def operator_of(problem: Reference) -> Operator:
    """The problem as an operator of one size, `as_given`, whose inputs and outputs have fixed shapes and types.

    The budget of an element: one rounding of it to its own type, and of the root mean square of all elements of its
    output, for each of the reference's operators a rounding to that type and 16 to f32, and two to f32 for each term of
    its sums. A sum of n terms of either sign is about √n of them large, and its error, n roundings of sums that grow so
    large, is of n roundings of it at most where they have either sign; twice as much is allowed.

    Raises:
        UnsupportedFeature: for element types that no kernel has, and where two runs on equal inputs differ.
    """
    inputs = problem.draw(0)
    with torch.no_grad():
        found = roundings_of(lambda: problem.compute(inputs))
        outputs = list(problem.compute(inputs))
        again = list(problem.compute(inputs))
    if not all(torch.equal(one, other) or one.isnan().any() for one, other in zip(outputs, again, strict=True)):
        raise UnsupportedFeature(f"{problem.name}: the reference gives other results for equal inputs: it draws some")
    wanted = {name: spec_of(name, one) for name, one in inputs.items()}
    given = [spec_of(f"output{number or ''}", one) for number, one in enumerate(outputs)]
    kind = next((one.dtype for one in given if one.dtype in _WIDE), "f32")
    size = Size("as_given", dict(problem.size), problem.source)
    return Operator(
        name=problem.name,
        computes=problem.computes,
        family="problem",
        inputs=tuple(_parameter(one, "" if one.name not in problem.optional else "0") for one in wanted.values()),
        outputs=tuple(_parameter(one) for one in given),
        dtypes=(kind,),
        sizes=(size,),
        distributions=(Distribution("as_given", "the problem's own", _drawing(problem)),),
        reference=_computing(problem, wanted),
        budget=lambda case: _budget(case, found),
        derivation=f"{found.operators} operators, sums of {found.terms} terms, of the outputs' root mean squares",
        flops=Formula("0"),
        matrix_flops=Formula(str(found.matrix_flops)),
        may_do_less="fast convolutions" if found.convolves else "",
        text_digest=hashlib.sha256(repr(list(problem.texts)).encode("utf-8", "surrogatepass")).hexdigest(),
        arguments=lambda _: problem.arguments,
    )


def listed(result: Any) -> list[Any]:
    """What a reference returns, one or several."""
    return list(result) if isinstance(result, tuple | list) else [result]  # pyright: ignore[reportUnknownArgumentType]


def spec_of(name: str, tensor: Any) -> ArraySpec:
    """A tensor's shape and element type.

    Raises:
        UnsupportedFeature: for element types that no kernel language has.
    """
    kind = TORCH_DTYPES.get(str(tensor.dtype))
    if kind is None:
        raise UnsupportedFeature(f"'{name}' has the element type {tensor.dtype}, which no kernel language has")
    return ArraySpec(name, kind, tuple(tensor.shape))


def _parameter(one: ArraySpec, least: str = "") -> Parameter:
    return Parameter(one.name, " ".join(map(str, one.shape)), "of the problem", one.dtype, least or _least(one))


def _least(one: ArraySpec) -> str:
    return "" if one.shape else "1"


def _drawing(problem: Reference) -> Callable[[Draw], Mapping[str, Any]]:
    def make(draw: Draw) -> Mapping[str, Any]:
        drawn = problem.draw(int(draw.random.integers(1 << 31)))
        return {name: array_of(one) for name, one in drawn.items()}

    return make


def _computing(problem: Reference, wanted: Mapping[str, ArraySpec]) -> Callable[[Arrays, Values], Outputs]:
    def reference(given: Arrays, _: Values) -> Outputs:
        tensors = {name: _tensor_of(given[name], one) for name, one in wanted.items()}
        with torch.no_grad():
            results = problem.compute(tensors)
        return tuple(one.double().numpy() if one.is_floating_point() else one.numpy() for one in results)

    return reference


def _tensor_of(values: Array, spec: ArraySpec) -> Any:
    """A case's values: floats as they are, wider than the problem's own; others in its types."""
    return torch.from_numpy(np.ascontiguousarray(values if spec.kind.is_float else values.astype(spec.kind.numpy)))


def array_of(tensor: Any) -> Array:
    """A tensor's elements in numpy's type of them."""
    kind: DType = DTYPES[TORCH_DTYPES[str(tensor.dtype)]]
    dense = tensor.detach().contiguous()
    if kind.name in ("bf16", "f8e4m3fn", "f8e5m2"):
        return dense.view(torch.int16 if kind.bytes == 2 else torch.uint8).numpy().view(kind.numpy)
    return dense.numpy()


def _budget(case: Case, found: Roundings) -> Outputs:
    def allowed(values: Array, parameter: Parameter) -> Array:
        kind = parameter.element(case.dtype)
        if not kind.is_float:
            return np.zeros(values.shape)
        finite = values[np.isfinite(values)]
        scale = float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0
        share = found.operators * (limits(kind).unit + _POINTWISE * UNIT) + 2 * found.terms * UNIT
        return rounding(np.where(np.isfinite(values), values, 0.0), kind) + share * scale

    return tuple(map(allowed, case.expected, case.operator.outputs))
