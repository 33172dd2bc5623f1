"""Triton's autotuner in a capture: a choice among configurations, of which nothing is run."""

# pyright: basic
# ruff: noqa: ANN001, ANN201, ANN401

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

import triptych as tt
from triptych.core.dtypes import dtype_of
from triptych.core.plan import Allocate, Choose, Constant, Fill, Launch
from triptych.execution.capture import Recording, recording

DATA = np.arange(300, dtype=np.float32)
HOOKED: list[object] = []


@pytest.fixture(autouse=True)
def active() -> Generator[None]:
    with tt.triton.activate(chip="h100"):
        yield


def note(arguments) -> None:
    HOOKED.append(arguments["BLOCK"])


def only_small(configurations, arguments, **_: object):
    assert arguments["n"] == DATA.size
    return [one for one in configurations if one.kwargs["BLOCK"] < 1000]


CONFIGURATIONS = [
    triton.Config({"BLOCK": 64}, num_warps=2),
    triton.Config({"BLOCK": 128}, num_warps=4, pre_hook=note),
    triton.Config({"BLOCK": 1024}, num_warps=4),
]


def body(x, y, table, n, BLOCK: tl.constexpr, WHOLE: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_assert(BLOCK != 128 or n is not None)
    values = tl.load(x + places, mask=places < n) + tl.load(table + places % 4)
    if WHOLE:
        tl.atomic_add(y + places, values)
    else:
        tl.atomic_add(y + places, values, mask=places < n)


heuristics = triton.heuristics({"WHOLE": lambda named: named["n"] % named["BLOCK"] == 0})
pruned = triton.autotune(
    CONFIGURATIONS, key=["n"], reset_to_zero=["y"], prune_configs_by={"early_config_prune": only_small}
)  # fmt: skip
tuned = pruned(heuristics(triton.jit(body)))
restored = triton.autotune(CONFIGURATIONS[:2], key=["n"], restore_value=["y"])(heuristics(triton.jit(body)))
single = triton.autotune(CONFIGURATIONS[:1], key=["n"], reset_to_zero=["y"])(heuristics(triton.jit(body)))


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 32})], key=[])
@triton.jit
def strict(y, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK == 32)
    tl.store(y + tl.arange(0, BLOCK), 1.0)


def captured(kernel: Any, zeroed: bool) -> tuple[Recording, Any]:
    with recording() as made:
        x = made.new_input("x", dtype_of("f32"), DATA.shape)
        y = tt.zeros(x.shape) if zeroed else tt.empty(x.shape)
        table = np.arange(4, dtype=np.float32)
        kernel[lambda named: (triton.cdiv(x.size, named["BLOCK"]),)](x, y, table, x.size)
    return made, made.plan([y.handle], ["y"])


def check(plan: Any) -> Any:
    found = tt.plans.run_plan(plan, {"x": DATA})
    np.testing.assert_array_equal(found.outputs[0], DATA + np.arange(300) % 4)
    return found


def test_a_choice() -> None:
    HOOKED.clear()
    made, plan = captured(tuned, zeroed=False)
    assert [type(node) for node in plan.nodes] == [Allocate, Constant, Choose]
    (choice,) = (node for node in made.nodes if isinstance(node, Choose))
    assert [label.split()[0] for label in choice.labels] == ["BLOCK=64", "BLOCK=128"]
    assert [[type(node) for node in one.nodes] for one in choice.alternatives] == [[Fill, Launch]] * 2
    assert HOOKED == [128]
    found = check(plan)
    assert set(found.choices[0].seconds) == set(choice.labels)
    assert len(found.launches) == 1
    assert tt.plans.pack(captured(tuned, zeroed=False)[1]) == tt.plans.pack(plan)  # nothing is remembered
    assert tuned.cache == {}
    assert tuned.configs is CONFIGURATIONS


def test_values_are_restored_by_clones() -> None:
    _, plan = captured(restored, zeroed=True)
    assert [type(node) for node in plan.nodes] == [Allocate, Fill, Constant, Choose]
    check(plan)


def test_one_configuration_is_no_choice() -> None:
    _, plan = captured(single, zeroed=True)
    assert [type(node) for node in plan.nodes] == [Allocate, Fill, Constant, Launch]
    check(plan)


def test_configurations_that_do_not_compile_are_left_out() -> None:
    with recording() as made:
        y = tt.empty(32)
        strict[1,](y)
    assert [type(node) for node in made.nodes] == [Allocate, Launch]
    np.testing.assert_array_equal(tt.plans.run_plan(made.plan([y.handle]), {}).outputs[0], np.ones(32))


def test_a_benchmark_has_no_times() -> None:
    with recording(), pytest.raises(tt.ValueTouched, match="a benchmark times launches"):
        triton.testing.do_bench(lambda: None)
