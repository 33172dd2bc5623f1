"""Our own kernels, as they are, on arrays without data: their plans, run on a case's inputs, are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import triptych as tt
from triptych.core.dtypes import dtype_of
from triptych.core.plan import Launch, Plan
from triptych.execution.capture import recording
from triptych.kernels import cuda, nki, triton
from triptych.kernels.catalogue import KERNELS
from triptych.operators import OPERATORS, operator
from triptych.operators.case import Case, case

LANGUAGES = {"cuda": cuda, "triton": triton, "nki": nki}
NAMES = [name for name in OPERATORS if all(f"{language}.{name}" in KERNELS for language in LANGUAGES)]
"""Functions that every language has by the operator's name."""
OTHERS: list[tuple[Callable[..., Any], str, str]] = [
    (cuda.matmul_tiled, "matmul", "f16"),
    (cuda.matmul_wgmma, "matmul", "f16"),
    (triton.matmul, "matmul", "f16"),
    (triton.persistent_matmul, "matmul", "f16"),
    (nki.matmul, "matmul", "f32"),
    (cuda.attention_naive, "attention", "f32"),
    (triton.attention, "attention", "f16"),
    (nki.attention, "attention", "f32"),
]
"""Their programs are large: they are captured here, and run by tests of kernels."""


def captured(function: Callable[..., Any], one: Case) -> Plan:
    """The plan of a function on the inputs of a case, which is the same each time."""
    options = {"causal": True} if one.size.get("causal") else {}
    packed: list[bytes] = []
    with tt.profile(chip="trn2" if function.__module__.startswith("triptych.kernels.nki") else "h100"):
        for _ in range(2):
            with recording() as made:
                inputs = [made.new_input(key, dtype_of(array.dtype), array.shape) for key, array in one.inputs.items()]
                result: Any = function(*inputs, **options)
                arrays = cast("tuple[Any, ...]", result if isinstance(result, tuple) else (result,))
            handles = [made.memory.bind(array) for array in arrays]
            packed.append(tt.plans.pack(made.plan(handles, [output.name for output in one.operator.outputs])))
    assert packed[0] == packed[1]
    plan = tt.plans.unpack(packed[0])
    assert [handle.storage.name for handle in plan.inputs] == list(one.inputs)
    assert [handle.storage.name for handle in plan.outputs] == [output.name for output in one.operator.outputs]
    return plan


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_plans_are_right(language: str, name: str) -> None:
    declared = operator(name)
    one = case(declared, declared.sizes[0].name, "f32", declared.distributions[0].name)
    with tt.profile(chip=KERNELS[f"{language}.{name}"].chip):
        found = tt.plans.run_plan(captured(getattr(LANGUAGES[language], name), one), dict(one.inputs))
    kinds = [output.element(one.dtype).numpy for output in declared.outputs]
    assert one.error(tuple(np.asarray(array, kind) for array, kind in zip(found.outputs, kinds, strict=True))) <= 1
    assert [finding for launch in found.launches for finding in launch.findings] == []


@pytest.mark.parametrize(("function", "name", "dtype"), OTHERS)
def test_plans_of_large_kernels(function: Callable[..., Any], name: str, dtype: str) -> None:
    declared = operator(name)
    plan = captured(function, case(declared, declared.sizes[0].name, dtype, declared.distributions[0].name))
    launches = [node for node in plan.nodes if isinstance(node, Launch)]
    assert launches
    named = {handle.storage.name for launch in launches for handle in launch.handles}
    assert named >= {one.name for one in declared.parameters}


def test_addresses_in_data_are_those_of_the_plan() -> None:
    """Pointers that the host puts into an array: a constant of the plan, whose storages lie where it says."""
    random = np.random.default_rng(0)
    shapes = ((64, 64, 64), (32, 96, 64))
    a = [random.standard_normal((m, k)).astype(np.float16) for m, _, k in shapes]
    b = [random.standard_normal((k, n)).astype(np.float16) for _, n, k in shapes]
    with tt.profile(chip="h100"):
        with recording() as made:
            handles = [
                [made.new_input(f"{label}{at}", dtype_of("f16"), one.shape) for at, one in enumerate(arrays)]
                for label, arrays in (("a", a), ("b", b))
            ]
            products = triton.grouped_matmul(*handles)
            outputs = [made.memory.bind(one) for one in products]
        data = {f"{label}{at}": one for label, arrays in (("a", a), ("b", b)) for at, one in enumerate(arrays)}
        found = tt.plans.run_plan(made.plan(outputs), data)
    for left, right, product in zip(a, b, found.outputs, strict=True):
        np.testing.assert_allclose(product, left.astype(np.float64) @ right, atol=2**-6)
