"""What becomes a node of a plan, in which order, and what is refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import triptych as tt
from triptych.core.dtypes import DTYPES, dtype_of
from triptych.core.handles import Handle, Storage
from triptych.core.plan import Allocate, Constant, Copy, Fill, Launch, SetVariable
from triptych.execution.capture import Recording, recording
from triptych.kernels import nki

SOURCE = """
__constant__ float factor[2];
extern "C" __global__ void scale(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += factor[i & 1] * x[i];
}
"""
LOOK_UP = """
__device__ float *table;
extern "C" __global__ void look_up(const int *x, float *y) { y[threadIdx.x] = table[x[threadIdx.x]]; }
"""


def inputs(made: Recording, *shapes: tuple[int, ...]) -> list[tt.Array]:
    return [made.new_input(f"x{at}", dtype_of("f32"), shape) for at, shape in enumerate(shapes)]


def test_stores_of_the_host() -> None:
    with recording() as made:
        (x,) = inputs(made, (4, 6))
        y = tt.zeros((4, 6))
        y[1, ::2] = 2.5
        y[2:].copy_(x[:2])
        y[0] = np.arange(6, dtype=np.int64)
        y.copy_(x[:1])
        copy = x.transpose().clone()
        y.zero_()
        copy[0] = [1, 2, 3, 4]
    plan = made.plan([y.handle, copy.handle], ["y", "copy"])
    data = np.arange(24, dtype=np.float32).reshape(4, 6)
    found = tt.plans.run_plan(plan, {"x0": data})
    np.testing.assert_array_equal(found.outputs[0], np.zeros((4, 6)))
    np.testing.assert_array_equal(found.outputs[1], np.concatenate(([[1, 2, 3, 4]], data.T[1:])))
    assert [type(node) for node in plan.nodes] == [
        Allocate, Fill, Fill, Copy, Constant, Copy, Copy, Allocate, Copy, Fill, Constant, Copy,
    ]  # fmt: skip
    without_the_last_fill = made.nodes[:-3] + made.nodes[-2:]
    made.nodes = without_the_last_fill
    expected = np.broadcast_to(data[:1], (4, 6))
    np.testing.assert_array_equal(tt.plans.run_plan(made.plan([y.handle]), {"x0": data}).outputs[0], expected)


def test_launches_and_variables_in_their_order() -> None:
    kernels = tt.cuda.compile(SOURCE)
    kernels.variables["factor"].copy_from([1.0, 2.0])
    with recording() as made:
        (x,) = inputs(made, (5,))
        y = tt.zeros(5)
        launch = kernels["scale"][1, 32](x, y, 5)
        kernels.variables["factor"].copy_from([10.0, 0.0])
        kernels["scale"][1, 32](x, y, 5)
        with pytest.raises(tt.ValueTouched, match="'counters' of a launch of 'scale' is known when the plan is run"):
            assert launch.counters
        with pytest.raises(tt.ValueTouched, match="variable 'factor' has an address and values where"):
            kernels.variables["factor"].numpy()
    assert [type(node) for node in made.nodes] == [Allocate, Fill, SetVariable, Launch, SetVariable, Launch]
    found = tt.plans.run_plan(made.plan([y.handle], ["y"]), {"x0": np.arange(5, dtype=np.float32)})
    np.testing.assert_array_equal(found.outputs[0], [0, 2, 22, 6, 44])


def test_a_trace_behind_variables() -> None:
    """A NeuronCore's program has no variables: what GPU kernels of the process have stored is not looked for in it."""
    tt.cuda.compile(SOURCE).variables["factor"].copy_from([1.0, 2.0])
    with recording() as made:
        nki.vec_add(*inputs(made, (5,), (5,)))
    assert sum(isinstance(node, Launch) for node in made.nodes) == 1


def test_pointers_in_variables() -> None:
    kernels = tt.cuda.compile(LOOK_UP)
    with recording() as made:
        x, y, table = made.new_input("x", dtype_of("s32"), (4,)), tt.empty(4), tt.empty(8)
        table.copy_(np.arange(8) * 10)
        kernels.variables["table"].copy_from(table.data_ptr())
        kernels["look_up"][1, 4](x, y)
    found = tt.plans.run_plan(made.plan([y.handle]), {"x": np.array([7, 0, 3, 1], np.int32)})
    np.testing.assert_array_equal(found.outputs[0], [70, 0, 30, 10])
    with recording() as later:  # the variable points to memory of this call, of which nobody knows the contents
        kernels["look_up"][1, 4](later.new_input("x", dtype_of("s32"), (4,)), tt.empty(4))
    assert [type(node) for node in later.nodes] == [Allocate, Allocate, SetVariable, Launch]


def test_arrays_with_data_are_constants_and_follow_their_changes() -> None:
    kernels = tt.cuda.compile(SOURCE)
    kernels.variables["factor"].copy_from([1.0, 1.0])
    mine = np.ones(6, np.float32)
    with recording() as made:
        y = tt.zeros(3)
        kernels["scale"][1, 32](mine[3:], y, 3)
        kernels["scale"][1, 32](mine[:3], y, 3)
        mine[:3] = 5
        kernels["scale"][1, 32](mine[:3], y, 3)
    assert [type(node) for node in made.nodes] == [
        Allocate, Fill, Constant, SetVariable, Launch, Launch, Constant, Copy, Launch,
    ]  # fmt: skip
    np.testing.assert_array_equal(tt.plans.run_plan(made.plan([y.handle]), {}).outputs[0], [7, 7, 7])


def test_too_much_data_of_the_host() -> None:
    kernels = tt.cuda.compile(SOURCE)
    with (
        recording(),
        pytest.raises(tt.CaptureError, match=r"float32\[300000\] has 1200000 bytes that the program made"),
    ):
        kernels["scale"][1, 32](np.ones(300_000, np.float32), tt.zeros(3), 3)


def test_kernels_of_one_name_and_other_texts() -> None:
    text = 'extern "C" __global__ void set(float *y) {{ y[threadIdx.x] = {value}f; }}'
    with recording() as made:
        y, z = tt.empty(2), tt.empty(2)
        tt.cuda.compile(text.format(value="1.0"))["set"][1, 2](y)
        tt.cuda.compile(text.format(value="2.0"))["set"][1, 2](z)
        tt.cuda.compile(text.format(value="1.0"))["set"][1, 1](z)
    plan = made.plan([y.handle, z.handle])
    assert sorted(plan.programs) == ["set", "set.2"]
    found = tt.plans.run_plan(plan, {})
    np.testing.assert_array_equal(found.outputs, [[1, 1], [1, 2]])


def test_storages_are_called_as_inputs_outputs_and_arguments() -> None:
    kernels = tt.cuda.compile(SOURCE)
    with recording() as made:
        (x,) = inputs(made, (3,))
        y, z = tt.zeros(3), tt.zeros(3)
        kernels["scale"][1, 32](x, y, 3)
        kernels["scale"][1, 32](y, z, 3)
    plan = made.plan([z.handle], ["out"])
    names = {handle.storage.address: handle.storage.name for node in plan.nodes for handle in node.handles}
    assert list(names.values()) == ["y", "out", "x0"]


def test_an_array_of_an_earlier_call_is_memory_of_unknown_contents() -> None:
    kernels = tt.cuda.compile(SOURCE)
    with recording() as before:
        table = tt.zeros(3)
    with recording(before) as first:
        kept = tt.zeros(3)
    with recording(before) as second:
        (x,) = inputs(second, (3,))
        assert kept.handle.storage is not kept.handle  # the same view of memory of this call
        kernels["scale"][1, 32](x, kept, 3)
        kernels["scale"][1, 32](table, kept, 3)
        kept[1:].fill_(4)
    assert [type(node) for node in first.nodes] == [Allocate, Fill, Allocate, Fill]
    assert sum(isinstance(node, Allocate) for node in second.nodes) == 2
    data = {"x0": np.ones(3, np.float32)}
    with recording(before):
        pass
    outputs = [
        Handle(node.target.storage, DTYPES["f32"], (3,), (4,)) for node in second.nodes if isinstance(node, Fill)
    ]
    found = tt.plans.run_plan(second.plan(outputs[-1:]), data).outputs[0]
    assert np.isnan(found[0])
    assert list(found[1:]) == [4, 4]


def test_handles_of_nobody() -> None:
    forged = Handle(Storage("x0", 1 << 36, 12), DTYPES["f32"], (3,), (4,))
    with recording() as made:
        inputs(made, (3,))
        with pytest.raises(tt.CaptureError, match="'x0' is no array of this call"):
            made.add(Fill(forged, 0))


def test_nothing_runs() -> None:
    with recording() as made:
        plan = made.plan([])
        with pytest.raises(tt.CaptureError, match="run_plan runs a plan on data"):
            tt.plans.run_plan(plan, {})
        with pytest.raises(tt.CaptureError, match="a recording inside another"), recording():
            pass
    assert made.nodes == []
    tt.cuda.compile(SOURCE)["scale"][1, 32](np.ones(3, np.float32), np.ones(3, np.float32), 3)  # runs again


def test_what_no_array_can_hold() -> None:
    with recording() as made:
        with pytest.raises(tt.CaptureError, match="300 is no u8"):
            tt.zeros(3, "u8").fill_(300)
        with pytest.raises(tt.CaptureError, match="a copy of f32 to f16 is a conversion, which a kernel must make"):
            tt.zeros(3, "f16").copy_(inputs(made, (3,))[0])
        with pytest.raises(tt.UsageError, match="does not go into one of shape"):
            tt.zeros(3).copy_(tt.zeros((2, 3)))
        with pytest.raises(tt.UsageError, match="expected whole numbers of 0 or more"):
            tt.empty((3, -1))


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    with recording(), pytest.raises(tt.CaptureError, match=r"arrays of .* bytes in all; at most"):
        tt.empty((1 << 20, 1 << 20))
    monkeypatch.setattr(sys.modules[Recording.__module__], "MOST_NODES", 5)
    with recording():
        for _ in range(2):
            tt.zeros(3)
        tt.empty(3)
        with pytest.raises(tt.CaptureError, match="more than 5 launches, stores and allocations"):
            tt.empty(3)


def test_the_plan_of_one_launch_is_not_noted() -> None:
    kernel = tt.cuda.compile(SOURCE)["scale"]
    with recording() as made:
        (x,) = inputs(made, (3,))
        plan = kernel[1, 32].plan(x, x, 3)
    assert made.nodes == []
    assert [handle.storage.name for handle in plan.inputs] == ["x"]
