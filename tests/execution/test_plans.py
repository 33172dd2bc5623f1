from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from triptych.core.dtypes import DTYPES
from triptych.core.errors import ArgumentError, LaunchError, MemoryFault, PlanError
from triptych.core.handles import AddressSpace, Handle, Storage, contiguous_strides
from triptych.core.plan import Allocate, Choose, Constant, Copy, Fill, Launch, Plan, Program, Scalar
from triptych.core.serialise import pack
from triptych.execution.profile import profile
from triptych.execution.run import run_plan

# y[i] = a * x[i] for i = tid + ctaid * ntid, as often as `times` says
PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 times) {
    .reg .pred %p; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [y];
    ld.param.u64 %rd2, [x];
    ld.param.f32 %f1, [a];
    ld.param.u32 %r5, [times];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd3, %r4, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
AGAIN:
    ld.global.f32 %f2, [%rd5];
    mul.f32 %f3, %f2, %f1;
    st.global.f32 [%rd4], %f3;
    sub.u32 %r5, %r5, 1;
    setp.ne.u32 %p, %r5, 0;
    @%p bra AGAIN;
    ret;
}
"""
PROGRAMS = {"p": Program("gpu", PTX, "ptx", "sm_80")}
F32 = DTYPES["f32"]
N = 64


def f32(storage: Storage, count: int = N, start: int = 0) -> Handle:
    return Handle(storage, F32, (count,), (4,), 4 * start)


def scale(target: Storage, source: Storage, factor: float, times: int = 1, block: int = 32) -> Launch:
    arguments = (f32(target), f32(source), Scalar(F32, factor), Scalar(DTYPES["u32"], times))
    return Launch("p", "scale", (N // block, 1, 1), (block, 1, 1), arguments)


def storages(*names: str) -> list[Storage]:
    space = AddressSpace()
    return [space.place(name, 4 * N) for name in names]


def values() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(5).random(N, dtype=np.float32)


def test_nodes_run_in_order() -> None:
    x, y, z, c = storages("x", "y", "z", "c")
    host = np.arange(N, dtype=np.float32)
    plan = Plan(
        (
            Allocate(y),
            Allocate(z),
            Constant(c, host.tobytes()),
            scale(y, x, 2.0),
            Fill(f32(y, 4), 9.0),
            Copy(f32(z, 32), f32(y, 32)),
            Copy(f32(z, 32, 32), f32(c, 32)),
            scale(x, z, -1.0),
        ),
        PROGRAMS,
        (f32(x),),
        (f32(z), f32(x)),
    )
    data = values()
    expected = data * 2
    expected[:4] = 9
    expected[32:] = host[:32]
    with profile(chip="h100") as open_profile:
        run = run_plan(plan, {"x": data})
    assert np.array_equal(run.outputs[0], expected)
    assert np.array_equal(data, -expected)  # the caller's own memory
    assert np.shares_memory(run.outputs[1], data)
    assert [report.kernel for report in run.launches] == ["scale", "scale"]
    assert [report.record for report in open_profile.launches] == [report.record for report in run.launches]


def test_fresh_memory_is_not_zero() -> None:
    (y,) = storages("y")
    run = run_plan(Plan((Allocate(y),), outputs=(f32(y),)), {})
    assert np.isnan(run.outputs[0]).all()


def test_strided_fill_and_copy() -> None:
    (x,) = storages("x")
    matrix = Handle(x, F32, (8, 8), contiguous_strides((8, 8), F32))
    diagonal = Handle(x, F32, (8,), (36,))
    transposed = replace(matrix, strides=(4, 32))
    data = values()
    expected = data.reshape(8, 8).copy()
    np.fill_diagonal(expected, 3)
    run_plan(Plan((Fill(diagonal, 3), Copy(matrix, transposed))), {"x": data})
    assert np.array_equal(data.reshape(8, 8), expected.T)


@pytest.mark.parametrize(("dtype", "value"), [("s32", 0.5), ("u8", -1), ("u8", 256), ("s32", float("nan"))])
def test_fill_with_a_value_that_the_dtype_has_not(dtype: str, value: float) -> None:
    (x,) = storages("x")
    with pytest.raises(PlanError, match=f"is no {dtype}"):
        run_plan(Plan((Fill(Handle(x, DTYPES[dtype], (4,), (DTYPES[dtype].bytes,)), value),)), {"x": values()})


def choose(x: Storage, y: Storage, times: Sequence[int]) -> Choose:
    """Alternatives that store 1x, 2x, 3x …, slower the more often they do so."""
    plans = tuple(Plan((scale(y, x, number + 1.0, count),)) for number, count in enumerate(times))
    return Choose(tuple(f"times {count}" for count in times), plans)


def test_the_fastest_alternative_wins_and_the_others_leave_no_trace() -> None:
    x, y = storages("x", "y")
    plan = Plan((Allocate(y), choose(x, y, (500, 1, 300))), PROGRAMS, (f32(x),), (f32(y),))
    data = values()
    before = data.copy()
    with profile(chip="h100") as open_profile:
        run = run_plan(plan, {"x": data})
    (choice,) = run.choices
    assert choice.label == min(choice.seconds, key=lambda label: choice.seconds[label])
    assert set(choice.seconds) == {"times 500", "times 1", "times 300"}
    factor = {"times 500": 1, "times 1": 2, "times 300": 3}[choice.label]
    assert np.array_equal(run.outputs[0], before * np.float32(factor))
    assert np.array_equal(data, before)
    assert len(run.launches) == len(open_profile.launches) == 1


def test_alternatives_work_on_clones_of_what_was_there() -> None:
    (x,) = storages("x")
    plans = tuple(Plan((scale(x, x, 2.0), scale(x, x, 2.0))) for _ in range(3))
    data = values()
    before = data.copy()
    run_plan(Plan((Choose(("a", "b", "c"), plans),), PROGRAMS), {"x": data})
    assert np.array_equal(data, before * 4)


def test_alternative_that_cannot_be_launched_is_passed_over() -> None:
    x, y = storages("x", "y")
    good, bad = scale(y, x, 2.0), replace(scale(y, x, 3.0), shared_bytes=10**6)
    plan = Plan((Choose(("bad", "good"), (Plan((bad,)), Plan((good,)))),), PROGRAMS)
    out = np.zeros(N, np.float32)
    run = run_plan(plan, {"x": values(), "y": out})
    assert run.choices[0].label == "good"
    assert "shared memory" in run.choices[0].refused["bad"]
    assert np.array_equal(out, values() * 2)
    with pytest.raises(LaunchError, match="shared memory"):
        run_plan(Plan((Choose(("bad",), (Plan((bad,)),)),), PROGRAMS), {"x": values(), "y": out})


def test_winner_brings_its_own_storages() -> None:
    x, y, z = storages("x", "y", "z")
    plan = Plan(
        (Choose(("only",), (Plan((Allocate(y), scale(y, x, 2.0))),)), Allocate(z), scale(z, y, 2.0)),
        PROGRAMS,
        outputs=(f32(z),),
    )
    assert np.array_equal(run_plan(plan, {"x": values()}).outputs[0], values() * 4)


def test_fault_in_a_kernel_is_an_error_of_the_plan_run() -> None:
    (x,) = storages("x")
    launch = replace(scale(x, x, 1.0), arguments=(Scalar(DTYPES["u64"], 64), *scale(x, x, 1.0).arguments[1:]))
    with pytest.raises(MemoryFault):
        run_plan(Plan((launch,), PROGRAMS), {"x": values()})


def test_data_must_fit_the_plan() -> None:
    x, y = storages("x", "y")
    plan = Plan((scale(y, x, 2.0),), PROGRAMS)
    good = {"x": values(), "y": values()}
    with pytest.raises(PlanError, match="it takes data for: y, x; missing: y"):
        run_plan(plan, {"x": values()})
    with pytest.raises(PlanError, match="unknown: w, z"):
        run_plan(plan, {**good, "z": values(), "w": values()})
    with pytest.raises(ArgumentError, match=r"'x': expected 256 bytes in C order, got float32\[63\], 252 bytes"):
        run_plan(plan, {**good, "x": values()[1:]})
    with pytest.raises(ArgumentError, match="with gaps"):
        run_plan(plan, {**good, "x": np.zeros(2 * N, np.float32)[::2]})
    frozen = values()
    frozen.setflags(write=False)
    with pytest.raises(ArgumentError, match="'y': the plan may write it, but the array is read-only"):
        run_plan(plan, {**good, "y": frozen})


def test_read_only_storage_cannot_be_stored_to() -> None:
    x, y = storages("x", "y")
    x = replace(x, writable=False)
    data, out = values(), np.zeros(N, np.float32)
    data.setflags(write=False)
    run_plan(Plan((scale(y, x, 2.0),), PROGRAMS), {"x": data, "y": out})
    assert np.array_equal(out, data * 2)
    with pytest.raises(MemoryFault):
        run_plan(Plan((scale(x, y, 2.0),), PROGRAMS), {"x": values(), "y": out})


def test_use_before_allocation_is_an_error() -> None:
    x, y = storages("x", "y")
    with pytest.raises(PlanError, match="'y' is used where nothing has allocated it yet"):
        run_plan(Plan((scale(y, x, 2.0), Allocate(y)), PROGRAMS), {"x": values()})


def test_a_plan_runs_the_same_in_another_process(tmp_path: Path) -> None:
    x, y = storages("x", "y")
    plan = Plan((Allocate(y), choose(x, y, (2, 1)), scale(y, y, 0.1)), PROGRAMS, (f32(x),), (f32(y),))
    (tmp_path / "plan").write_bytes(pack(plan))
    data = values()
    (tmp_path / "x").write_bytes(data.tobytes())
    code = """
import json, sys
from pathlib import Path
import numpy as np
from triptych.core.serialise import unpack
from triptych.execution.profile import profile
from triptych.execution.run import run_plan
folder = Path(sys.argv[1])
with profile(chip="h100"):
    run = run_plan(unpack((folder / "plan").read_bytes()), {"x": np.fromfile(folder / "x", np.float32)})
counters = [{name: counter.value for name, counter in report.counters.items()} for report in run.launches]
print(json.dumps([run.outputs[0].tobytes().hex(), counters, run.choices[0].label]))
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    with profile(chip="h100"):
        run = run_plan(plan, {"x": data})
    counters = [{name: counter.value for name, counter in report.counters.items()} for report in run.launches]
    assert json.loads(done.stdout) == [run.outputs[0].tobytes().hex(), counters, run.choices[0].label]


def test_alternatives_of_one_label_are_refused() -> None:
    x, y = storages("x", "y")
    slow, fast = choose(x, y, (500, 1)).alternatives
    with pytest.raises(PlanError, match="2 alternatives are called 'same'"):
        run_plan(Plan((Allocate(y), Choose(("same", "same"), (slow, fast))), PROGRAMS), {"x": values()})


def test_an_allocation_larger_than_the_hosts_memory() -> None:
    vast = Storage("vast", AddressSpace.FIRST_ADDRESS, 1 << 46)
    with pytest.raises(PlanError, match="the host has no memory for 'vast', 70368744177664 bytes"):
        run_plan(Plan((Allocate(vast),)), {})


@pytest.mark.parametrize("data", [[1], None, "x"])
def test_data_without_names(data: object) -> None:
    with pytest.raises(PlanError, match="expected data by the names of storages, got"):
        run_plan(Plan(()), data)  # type: ignore[arg-type]


def test_names_that_are_no_text() -> None:
    with pytest.raises(PlanError, match="unknown: 3, y"):
        run_plan(Plan(()), {3: values(), "y": values()})  # type: ignore[dict-item]


def test_an_output_that_repeats_its_elements() -> None:
    (x,) = storages("x")
    output = Handle(x, F32, (1 << 40, N), (0, 4))
    (found,) = run_plan(Plan((), inputs=(f32(x),), outputs=(output,)), {"x": values()}).outputs
    assert found.shape == (1 << 40, N)
    assert np.array_equal(found[-1], values())
