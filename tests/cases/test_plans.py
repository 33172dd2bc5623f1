"""What a kernel of each language becomes is a plan without data: it runs the same in another process."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import triptych as tt
from triptych.core.plan import Allocate, Launch
from triptych.execution import nodes
from triptych.execution.dispatch import execute
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki

SAXPY = """
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""
ELSEWHERE = """
import sys
from pathlib import Path
import numpy as np
import triptych as tt
folder = Path(sys.argv[1])
plan = tt.plans.unpack((folder / "plan").read_bytes())
given = dict(np.load(folder / "data.npz"))
data = {handle.storage.name: given[str(place)] for place, handle in enumerate(plan.inputs)}
run = tt.plans.run_plan(plan, data)
np.savez(folder / "outputs.npz", *run.outputs)
print(tt.plans.digest(plan), *(f"{name}={c.value}" for name, c in run.launches[0].counters.items()), sep="\\n")
"""


@nki.jit
def scaled_sum(a: Any, b: Any) -> Any:  # noqa: ANN401
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(nl.multiply(nl.load(a), 3.0), nl.load(b)))
    return out


def run_elsewhere(folder: Path, plan: tt.plans.Plan, inputs: list[np.ndarray[Any, Any]]) -> tuple[Any, list[str]]:
    (folder / "plan").write_bytes(tt.plans.pack(plan))
    np.savez(folder / "data.npz", **{str(place): array for place, array in enumerate(inputs)})  # type: ignore[arg-type]
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(folder)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    with np.load(folder / "outputs.npz") as outputs:
        return [outputs[name] for name in outputs.files], done.stdout.split()


def test_cuda_in_another_process(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    x, y = (generator.standard_normal(1000).astype(np.float32) for _ in range(2))
    kernel = tt.cuda.compile(SAXPY, arch="sm_80")["saxpy"].configure(grid=4, block=256)
    plan = kernel.plan(2.5, x, y, 1000)
    assert [handle.storage.name for handle in plan.inputs] == ["x", "y"]
    outputs, said = run_elsewhere(tmp_path, plan, [x, y])
    report = kernel(2.5, x, y, 1000)
    assert np.array_equal(outputs[1], y)
    assert said[0] == tt.plans.digest(plan)
    assert said[1:] == [f"{name}={counter.value}" for name, counter in report.counters.items()]


def test_nki_in_another_process(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    a, b = (generator.standard_normal((128, 64)).astype(np.float32) for _ in range(2))
    plan = scaled_sum.plan(a, b)
    assert [type(node) for node in plan.nodes] == [Allocate, Launch]
    assert [handle.storage.name for handle in plan.inputs] == ["a", "b"]
    outputs, said = run_elsewhere(tmp_path, plan, [a, b])
    with tt.profile(chip="trn2") as profile:
        here = scaled_sum(a, b)
    assert np.array_equal(outputs[0], here)
    np.testing.assert_allclose(here, 3 * a.astype(np.float64) + b, rtol=2**-23, atol=2**-22 * 3 * np.abs(a).max())
    assert said[1:] == [f"{name}={counter.value}" for name, counter in profile.launches[0].counters.items()]


def test_a_call_runs_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Launch] = []

    def watching(program: Any, launch: Launch, memory: Any, device: Any) -> Any:  # noqa: ANN401
        seen.append(launch)
        return execute(program, launch, memory, device)

    monkeypatch.setattr(nodes, "execute", watching)
    x, y = np.ones(64, np.float32), np.ones(64, np.float32)
    kernel = tt.cuda.compile(SAXPY, arch="sm_80")["saxpy"].configure(grid=1, block=64)
    kernel(2.0, x, y, 64)
    (launch,) = kernel.plan(2.0, x, y, 64).nodes
    assert isinstance(launch, Launch)
    assert [replace(one, arguments=()) for one in seen] == [replace(launch, arguments=())]
    assert launch.names == ("a", "x", "y", "n")


def test_what_a_plan_allocates_keeps_its_address() -> None:
    a = np.ones((128, 64), np.float32)
    first = scaled_sum(a, a)
    address = tt.data_ptr(first)
    second = scaled_sum(first, first)
    assert tt.data_ptr(first) == address
    assert tt.data_ptr(second) != address
    assert np.array_equal(second, np.full((128, 64), 16, np.float32))


def test_equal_calls_have_equal_plans() -> None:
    kernel = tt.cuda.compile(SAXPY, arch="sm_80")["saxpy"].configure(grid=4, block=256)
    plans = [kernel.plan(2.5, np.zeros(1000, np.float32), np.zeros(1000, np.float32), 1000) for _ in range(2)]
    assert len({tt.plans.digest(plan) for plan in plans}) == 1
    assert tt.plans.digest(kernel.plan(2.5, np.zeros(1001, np.float32), np.zeros(1000, np.float32), 1000)) not in {
        tt.plans.digest(plan) for plan in plans
    }
    shared = np.zeros(1000, np.float32)
    assert [h.storage.name for h in kernel.plan(2.5, shared[500:], shared, 500).inputs] == ["x", "x"]


def test_a_fault_names_the_argument_and_the_element() -> None:
    kernel = tt.cuda.compile(SAXPY, arch="sm_80")["saxpy"].configure(grid=4, block=256)
    x, y = np.zeros(1000, np.float32), np.zeros(1001, np.float32)
    with pytest.raises(tt.MemoryFault, match=r"\(argument 1, x\).*as its element 1000 of 1000"):
        kernel(2.5, x, y, 1001)
