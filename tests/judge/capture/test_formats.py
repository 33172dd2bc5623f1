"""Problems and candidates of KernelBench and of GPU MODE, end to end but for the sandbox."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from here import kinds, read

import triptych as tt
from triptych.judge.capture.inside import capture_task
from triptych.judge.capture.outside import Captured, CaptureFailed
from triptych.judge.capture.request import CaptureRequest, sizes_of
from triptych.judge.formats.table import FORMATS, format_of
from triptych.judge.problems.gpu_mode import gpu_mode_problem, gpu_mode_sizes
from triptych.judge.problems.kernelbench import kernelbench_problem
from triptych.operators.case import Case, case
from triptych.operators.operator import Operator

MODEL = '''
import torch
import torch.nn as nn

class Model(nn.Module):
    """A linear layer, then ReLU.

    More of it."""
    def __init__(self, inputs, outputs, scale):
        super().__init__()
        self.layer = nn.Linear(inputs, outputs)
        self.register_buffer("shift", torch.ones(outputs))
        self.scale = scale

    def forward(self, x, more):
        return torch.relu(self.layer(x) * self.scale + self.shift + more[0])

def get_inputs():
    return [torch.rand(8, 24), [torch.randn(16), 3]]

def get_init_inputs():
    return [24, 16, 0.5]
'''
MODEL_NEW = """
import torch, triton, triton.language as tl
import torch.nn as nn

@triton.jit
def kernel(x, w, b, shift, more, y, scale, N: tl.constexpr, K: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for k in range(K):
        total += tl.load(x + row * K + k) * tl.load(w + columns * K + k)
    total = (total + tl.load(b + columns)) * scale + tl.load(shift + columns) + tl.load(more + columns)
    tl.store(y + row * N + columns, tl.maximum(total, 0.0))

class ModelNew(nn.Module):
    def __init__(self, inputs, outputs, scale):
        super().__init__()
        self.layer = nn.Linear(inputs, outputs)
        self.register_buffer("shift", torch.ones(outputs))
        self.scale = scale

    def forward(self, x, more):
        assert more[1] == 3 and not torch.is_grad_enabled()
        y = torch.empty((x.shape[0], 16), device=x.device)
        kernel[(x.shape[0],)](x, self.layer.weight, self.layer.bias, self.shift, more[0], y, self.scale, N=16, K=24)
        return y
"""
UTILS = "def make_match_reference(reference, **limits):\n    return lambda data, output: ''\n"
TASK = "from typing import TypeVar\nimport torch\ninput_t = TypeVar('input_t')\noutput_t = TypeVar('output_t')\nN = 4\n"
TASK_FILE = """lang: py
tests:
  - {"size": 13, "seed": 4242}
  - {size: 40, seed: 5236}
benchmarks:
  - {"size": 1024, "seed": 1}
"""
REFERENCE = """
import torch
from task import input_t, output_t
from utils import make_match_reference

def ref_kernel(data: input_t) -> output_t:
    a, b, c, config = data
    assert a.is_cuda
    c[...] = a + config["factor"] * b
    return c

def generate_input(size: int, seed: int) -> input_t:
    generator = torch.Generator(device="cuda")
    generator.manual_seed(seed)
    a = torch.randn(size, size, device="cuda", dtype=torch.float16, generator=generator)
    b = torch.randn(size, size, device="cuda", dtype=torch.float16, generator=generator)
    return a, b, torch.empty(size, size, device="cuda", dtype=torch.float16), {"factor": 2}

check_implementation = make_match_reference(ref_kernel)
"""
SUBMISSION = """
#!POPCORN leaderboard add
import triton, triton.language as tl
from task import N, input_t, output_t

@triton.jit
def kernel(a, b, c, factor, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    tl.store(c + places, tl.load(a + places, mask=mask) + factor * tl.load(b + places, mask=mask), mask=mask)

def custom_kernel(data: input_t) -> output_t:
    a, b, c, config = data
    assert N == 4
    kernel[(triton.cdiv(a.numel(), 64),)](a, b, c, config["factor"], a.numel(), BLOCK=64)
    return c
"""


def capture(problem: Operator, source: str, form: str) -> Captured | CaptureFailed:
    """A candidate for a problem, captured."""
    sizes = sizes_of(problem, [one.values for one in problem.sizes], problem.dtype(problem.dtypes[0]))
    request = CaptureRequest(source, "submission.py", sizes, form)
    return read(capture_task(pickle.dumps(request)), request)


def judged(problem: Operator, source: str, form: str) -> tuple[Captured, Case, tuple[Any, ...]]:
    """What was captured, a case, and what the plan makes of it."""
    found = capture(problem, source, form)
    assert isinstance(found, Captured), found
    one = case(problem, "as_given", problem.dtypes[0], "as_given", seed=3)
    return found, one, tt.plans.run_plan(found.plans[0], dict(one.inputs)).outputs


def check_power(one: Case, outputs: tuple[Any, ...]) -> None:
    """The budget passes these results, and no results that are off."""
    assert one.error(outputs) <= 1
    coarse = 2.0 ** (-8 if outputs[0].dtype == np.float32 else -6)
    assert one.error(one.stored(tuple(array.astype(np.float64) * (1 + coarse) for array in outputs))) > 1
    assert one.error(tuple(np.zeros_like(array) for array in outputs)) > 1
    assert one.error(tuple(np.roll(array, 1) for array in outputs)) > 1


def test_kernelbench(linear: Operator) -> None:
    problem = linear
    assert [(one.name, one.axes, one.dtype) for one in problem.inputs] == [
        ("x", "8 24", "f32"), ("more0", "16", "f32"), ("model.shift", "16", "f32"),
        ("model.layer.weight", "16 24", "f32"), ("model.layer.bias", "16", "f32"),
    ]  # fmt: skip
    assert [(one.name, one.axes) for one in problem.outputs] == [("output", "8 16")]
    assert problem.computes == "A linear layer, then ReLU."
    assert problem.matrix_flops({}) == 2 * 8 * 16 * 24
    found, one, outputs = judged(problem, MODEL_NEW, "kernelbench")
    assert (found.library, found.differs, kinds(found.plans[0].nodes)) == ((), False, ["Allocate", "Launch"])
    check_power(one, outputs)
    again = case(problem, "as_given", "f32", "as_given", seed=3)
    other = case(problem, "as_given", "f32", "as_given", seed=4)
    np.testing.assert_array_equal(one.inputs["model.layer.weight"], again.inputs["model.layer.weight"])
    assert (one.inputs["model.layer.weight"] != other.inputs["model.layer.weight"]).any()
    x, more, shift, weight, bias = (array.astype(np.float64) for array in one.inputs.values())
    expected = np.maximum((x @ weight.T + bias) / 2 + shift + more, 0)
    np.testing.assert_allclose(one.truth, expected, rtol=1e-12, atol=1e-12)


LAUNCHING = "        kernel[(1,)](*(6 * [self.shift.cuda()]), 1.0, N=16, K=1)\n        self.scale = scale"
KERNELBENCH_ERRORS = {
    "class Model: pass": ("no_solution", "defines no class `ModelNew`"),
    MODEL_NEW.replace('"shift"', '"moved"').replace("self.shift", "self.moved"): (
        "no_solution", "no parameter or buffer `shift`",
    ),
    MODEL_NEW.replace("nn.Linear(inputs, outputs)", "nn.Linear(inputs, 8)"): (
        "no_solution", r"`layer.weight` has the shape \[8, 24\]",
    ),
    MODEL_NEW.replace("        self.scale = scale", LAUNCHING): (
        "unsupported", "kernels launched by ModelNew's __init__",
    ),
    "def ModelNew(*_):\n    return 3": ("no_solution", "makes no torch.nn.Module"),
    "from torch.utils import cpp_extension\nx = cpp_extension.load_inline": ("unsupported", "not supported yet"),
}  # fmt: skip


@pytest.fixture(scope="module")
def linear() -> Operator:
    """A problem of KernelBench."""
    return kernelbench_problem(MODEL, "linear_relu")


@pytest.mark.parametrize("source", KERNELBENCH_ERRORS)
def test_kernelbench_refusals(source: str, linear: Operator) -> None:
    code, message = KERNELBENCH_ERRORS[source]
    found = capture(linear, source, "kernelbench")
    assert isinstance(found, CaptureFailed), found
    assert found.code == code
    assert re.search(message, found.message)


def test_torch_in_the_forward_pass_is_library_work(linear: Operator) -> None:
    source = MODEL.replace("class Model(", "class ModelNew(")
    found = capture(linear, source, "kernelbench")
    assert isinstance(found, Captured)
    assert [(work.operator, work.used) for work in found.library] == [
        ("torch.addmm", False), ("torch.mul", False), ("torch.add", False), ("torch.relu", True),
    ]  # fmt: skip


def test_problems_of_one_name_differ(linear: Operator) -> None:
    """A batch, and what a pool knows of a candidate, would else take the one for the other."""
    assert kernelbench_problem(MODEL, "linear_relu").text_digest == linear.text_digest != ""
    assert kernelbench_problem(MODEL.replace("0.5]", "0.25]"), "linear_relu").text_digest != linear.text_digest


def test_kernelbench_problems_that_are_none() -> None:
    with pytest.raises(tt.UsageError, match="defines `get_init_inputs`; this does not"):
        kernelbench_problem(MODEL.replace("get_init_inputs", "other"), "p")
    with pytest.raises(tt.UnsupportedFeature, match="get_init_inputs gives a tensor, 'init0'"):
        kernelbench_problem(MODEL.replace("return [24, 16, 0.5]", "return [torch.ones(3)]"), "p")
    with pytest.raises(tt.UnsupportedFeature, match="other results for equal inputs"):
        kernelbench_problem(MODEL.replace("torch.relu", "nn.functional.dropout"), "p")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A problem of GPU MODE."""
    home = tmp_path_factory.mktemp("problems")
    (home / "utils.py").write_text(UTILS)
    one = home / "add"
    one.mkdir()
    for name, text in (("task.py", TASK), ("task.yml", TASK_FILE), ("reference.py", REFERENCE)):
        (one / name).write_text(text)
    return one


def test_gpu_mode(folder: Path) -> None:
    assert gpu_mode_sizes(folder) == ({"size": 13}, {"size": 40})
    assert gpu_mode_sizes(folder, "benchmarks") == ({"size": 1024},)
    problem = gpu_mode_problem(folder, {"size": 13})
    assert [(one.name, one.axes, one.dtype) for one in problem.inputs] == [
        ("data0", "13 13", "f16"),
        ("data1", "13 13", "f16"),
    ]
    assert (problem.name, problem.sizes[0].values, len(problem.text_digest)) == ("add", {"size": 13}, 64)
    found, one, outputs = judged(problem, SUBMISSION, "gpu_mode")
    assert (found.library, found.differs, kinds(found.plans[0].nodes)) == ((), False, ["Allocate", "Launch"])
    check_power(one, outputs)
    a, b = (array.astype(np.float64) for array in one.inputs.values())
    np.testing.assert_array_equal(one.truth, a + 2 * b)


def test_gpu_mode_refusals(folder: Path, tmp_path: Path) -> None:
    found = capture(gpu_mode_problem(folder, {"size": 13}), "def kernel(data): pass", "gpu_mode")
    assert isinstance(found, CaptureFailed)
    assert found.code == "no_solution"
    with pytest.raises(tt.UsageError, match=r"has a reference\.py; this has none"):
        gpu_mode_problem(tmp_path, {})
    with pytest.raises(tt.UsageError, match=r"cannot read .*task.yml"):
        gpu_mode_sizes(tmp_path)


def test_the_table() -> None:
    assert {name: row.entry for name, row in FORMATS.items()} == {
        "solution": "solution", "kernelbench": "ModelNew", "gpu_mode": "custom_kernel",
    }  # fmt: skip
    with pytest.raises(tt.UnknownName, match="unknown format 'kernelbnch'"):
        format_of("kernelbnch")
