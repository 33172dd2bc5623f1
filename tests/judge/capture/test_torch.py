"""Candidates that use torch: tensors on `cuda` without data; what torch would compute is library work."""

from __future__ import annotations

import re

import numpy as np
import pytest
from here import FILE, captured, failure, kinds, size

import triptych as tt
from triptych.judge.capture.outside import Captured

HEAD = """
import torch, triton, triton.language as tl

@triton.jit
def add(x, table, y, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    tl.store(y + places, tl.load(x + places, mask=mask) + tl.load(table + places % 4), mask=mask)

def run(x, table):
    y = torch.empty_like(x)
    add[(triton.cdiv(x.numel(), 64),)](x, table, y, x.numel(), BLOCK=64)
    return y

"""
X = np.arange(-32, 32, dtype=np.float32) / 8


def solution(body: str) -> str:
    """A source whose `solution` is the body."""
    return HEAD + "def solution(x):\n    " + "\n    ".join(body.splitlines())


def result(found: Captured) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """What the plan makes of X."""
    return tt.plans.run_plan(found.plans[0], {"x": X}).outputs[0]


def test_a_tensor_looks_like_one_on_a_gpu() -> None:
    found = captured(
        solution("""assert type(x) is torch.Tensor and x.is_cuda and not x.is_cpu and not x.is_meta
assert x.device == torch.device("cuda", 0) and x.get_device() == 0 and x.dtype == torch.float32
assert x.shape == (64,) and x.stride() == (1,) and x.is_contiguous() and x.numel() == 64
assert x[3:].data_ptr() == x.data_ptr() + 12 and x.data_ptr() % 256 == 0
assert x.view(8, 8).t().stride() == (1, 8) and x.unsqueeze(0).expand(3, -1).shape == (3, 64)
print(x, f"{x}")
return run(x, torch.zeros(4, device=x.device))""")
    )
    assert found.library == ()
    shown = "<captured tensor 'x' (f32[64]), device='cuda:0'>"
    assert found.printed == f"{shown} {shown}\n" * 2  # in each of the two calls
    assert kinds(found.plans[0].nodes) == ["Allocate", "Fill", "Allocate", "Launch"]
    np.testing.assert_array_equal(result(found), X)


TABLES = {
    "torch.arange(4, device='cuda', dtype=torch.float32)": ["Constant"],
    "torch.tensor([0.0, 1, 2, 3]).cuda()": ["Constant"],
    "torch.tensor([0, 1, 2, 3]).to(x.device, torch.float32)": ["Constant"],
    "torch.tensor([0, 1, 2, 3]).to(x)": ["Constant"],
    "torch.linspace(0, 3, 4, device=x.device)": ["Constant"],
    "x.new_empty(4).copy_(torch.arange(4))": ["Allocate", "Constant", "Copy"],
    "torch.arange(4, device='cuda', dtype=torch.float32).expand(2, 4).contiguous()[1]": [
        "Constant",
        "Allocate",
        "Copy",
    ],
    "torch.arange(8, device='cuda', dtype=torch.float32).view(2, 4)[0].clone()": ["Constant", "Allocate", "Copy"],
}


@pytest.mark.parametrize("table", TABLES)
def test_data_of_the_host_comes_along(table: str) -> None:
    found = captured(solution(f"return run(x, {table})"))
    assert found.library == ()
    assert kinds(found.plans[0].nodes) == [*TABLES[table], "Allocate", "Launch"]
    np.testing.assert_array_equal(result(found), X + np.arange(64) % 4)


def test_fills() -> None:
    found = captured(
        solution("""table = torch.full((2, 4), 5.0, device="cuda")
table[1].fill_(7)
table[1, 1:].zero_()
ones = torch.ones_like(table[0])
return run(run(x, table[1]), ones)""")
    )
    assert found.library == ()
    np.testing.assert_array_equal(result(found), X + np.where(np.arange(64) % 4, 0, 7).astype(np.float32) + 1)


LIBRARY = {
    "return torch.softmax(x, 0)": [("torch.softmax", True)],
    "y = torch.relu(x)\nreturn run(x, y)": [("torch.relu", True)],
    "torch.nn.functional.gelu(x)\nreturn run(x, x)": [("torch.gelu", False)],
    "x.add_(1)\nreturn run(x, x)": [("torch.add_", True)],
    "return run(x, x.half().float())": [("torch.to_copy", False), ("torch.to_copy", True)],
    "torch.add(x, x, out=x)\nreturn run(x, x)": [("torch.add", True)],
    "return (x.view(8, 8) @ x.view(8, 8)).view(64)": [("torch.mm", True)],
    "return run(x, torch.cat([x, x]))": [("torch.cat", True)],
    "y = torch.empty_like(x)\ny[:] = x > 0\nreturn run(x, y)": [("torch.gt", False), ("torch.copy_", True)],
    "z = torch.rand_like(x)\nreturn run(x, z)": [("torch.rand_like", True)],
}


@pytest.mark.parametrize("body", LIBRARY)
def test_library_work(body: str) -> None:
    found = captured(solution(body)).library
    assert [(work.operator, work.used) for work in found] == LIBRARY[body]
    lines = [work.where.line for work in found if work.where is not None and work.where.file == FILE]
    assert len(lines) == len(found)
    assert min(lines) > HEAD.count("\n") + 1


TOUCHED = [
    "x[0].item()", "float(x[0])", "x.tolist()", "x.cpu()", "x.numpy()", "x.to('cpu')", "x.sum().item()",
    "bool((x > 0).any())", "if_ = 1 if x[0] else 2", "torch.equal(x, x)", "torch.nonzero(x)", "x[x > 0]",
    "f'{x[0]:.3f}'", "range(x[0])", "torch.full((2,), x[0])", "torch.empty(4).copy_(x)", "x.unique()",
    "__import__('numpy').asarray(x)", "torch.tensor([1.0]).cuda().item()", "torch.masked_select(x, x > 0)",
]  # fmt: skip


@pytest.mark.parametrize("touch", TOUCHED)
def test_values_cannot_be_had(touch: str) -> None:
    found = failure(solution(f"{touch}\nreturn x"))
    assert found.code == "touched_values", found
    assert re.search("no values|needs values", found.message)
    assert found.where is not None
    assert (found.where.file, found.where.line) == (FILE, HEAD.count("\n") + 2)


def test_too_much_data() -> None:
    found = failure(solution("return run(x, torch.arange(1 << 20, device='cuda', dtype=torch.float32))"))
    assert (found.code, "4194304 bytes of host data" in found.message) == ("plan_refused", True)


def test_cuda_kernels_take_tensors() -> None:
    source = '''
import torch
import triptych as tt
KERNEL = tt.cuda.compile("""extern "C" __global__ void twice(const float *x, float *y) {
    y[threadIdx.x] = 2 * x[threadIdx.x];
}""")["twice"]
def solution(x):
    y = torch.empty(64, device="cuda")
    KERNEL[1, 64](x, y)
    return y
'''
    np.testing.assert_array_equal(result(captured(source)), 2 * X)
    assert captured(source, size(64), torch=True).plans == captured(source, size(64)).plans


def test_descriptors_of_the_host() -> None:
    source = (
        HEAD
        + """
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def copy(source, target):
    target.store([0, 0], source.load([0, 0]))

def solution(x):
    y = torch.empty_like(x)
    tiles = [TensorDescriptor.from_tensor(one.view(4, 16), [4, 16]) for one in (x, y)]
    copy[(1,)](*tiles)
    return y
"""
    )
    found = captured(source)
    assert kinds(found.plans[0].nodes) == ["Allocate", "Launch"]
    np.testing.assert_array_equal(result(found), X)
