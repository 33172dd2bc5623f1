"""A candidate's source in our own format: what it is given, and why it cannot be captured."""

from __future__ import annotations

import re
import sys
import time

import pytest
from here import FILE, captured, failure, kinds, size

from triptych.core.plan import Launch, Scalar
from triptych.core.serialise import pack

CUDA = '''
import triptych as tt
KERNEL = tt.cuda.compile("""
extern "C" __global__ void scale(const float *x, float *y, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = factor * x[i];
}
""")["scale"]
'''
LAUNCH = "    y = tt.empty(x.shape)\n    KERNEL[1, 64](x, y, {factor}, {n})\n    return y\n"
PLAIN = CUDA + "def solution(x):\n" + LAUNCH.format(factor=2.0, n="x.size")


def scalars(source: str) -> list[object]:
    """The numbers that the launch of a source gets."""
    (launch,) = (node for node in captured(source).plans[0].nodes if isinstance(node, Launch))
    return [argument.value for argument in launch.arguments if isinstance(argument, Scalar)]


def test_every_size_is_a_call() -> None:
    found = captured(PLAIN, size(64), size(10))
    assert [plan.inputs[0].shape for plan in found.plans] == [(64,), (10,)]
    for plan in found.plans:
        assert kinds(plan.nodes) == ["Allocate", "Launch"]
        assert [handle.storage.name for handle in (*plan.inputs, *plan.outputs)] == ["x", "y"]
    assert (found.library, found.differs, found.tampered, found.printed) == ((), False, (), "")
    assert [pack(plan) for plan in found.plans] == [pack(plan) for plan in captured(PLAIN, size(64), size(10)).plans]


@pytest.mark.parametrize(
    ("signature", "factor", "n"),
    [
        ("x, epsilon, n", "epsilon", "n"),
        ("x, *, n, epsilon=7.0", "epsilon", "n"),
        ("x, factor=0.5, size=64", "factor", "size"),
        ("*arrays, epsilon, n", "epsilon", "n"),
    ],
)
def test_constants_by_name(signature: str, factor: str, n: str) -> None:
    body = LAUNCH.format(factor=factor, n=n)
    take = "    (x,) = arrays\n" if signature.startswith("*") else ""
    assert scalars(f"{CUDA}def solution({signature}):\n{take}{body}") == [0.5, 64]


ERRORS = {
    "": ("no_solution", "the source defines no `solution`", None),
    "solution = 3": ("no_solution", "`solution` is a int, which cannot be called", None),
    "def solution(x, factor): pass": ("no_solution", r"does not take the inputs \(x\).*constants.*: n, epsilon", None),
    "def solution(): pass": ("no_solution", "does not take the inputs", None),
    "def solution(x:": ("unreadable", "SyntaxError", None),
    "x = '\ud800'": ("unreadable", "not UTF-8", None),
    "def solution(x):\n    return x": ("output_not_stored", "output 'y' is the input 'x'", None),
    "def solution(x):\n    return [1, 2]": ("shape", "returned a int; expected an array", None),
    "import triptych as tt\ndef solution(x):\n    return tt.empty(3)": ("shape", r"f32\[3\]; expected f32\[64\]", None),
    "import triptych as tt\ndef solution(x):\n    return x, x": ("shape", "2 arrays; expected 1: y", None),
    "\ndef solution(x):\n    return x.item()": ("touched_values", "item.. needs the values of 'x'", 3),
    "def solution(x):\n    raise SystemExit(0)": ("host_error", "SystemExit: 0", 2),
    "def solution(x):\n    raise KeyboardInterrupt": ("host_error", "KeyboardInterrupt", 2),
    "import os\nos.nothing": ("host_error", "AttributeError: module 'os' has no", 2),
    "def solution(x):\n    return solution(x)": ("host_error", "RecursionError", 2),
    "def solution(x):\n    raise MemoryError": ("out_of_memory", "MemoryError", 2),
    "class Odd(Exception):\n    def __str__(self): raise self\ndef solution(x):\n    raise Odd": (
        "host_error", "Odd: <no text: Odd>", 4,
    ),
    "import triptych as tt\ntt.cuda.compile('__global__ void f( {')": ("compile_error", "expected", None),
    "import triptych as tt\ntt.ptx.compile('.version 8.0')": ("compile_error", "", 2),
    "import triptych as tt\ndef solution(x):\n    tt.empty(1 << 40)": ("plan_refused", "bytes in all; at most", 3),
    "from triptych.kernels.cuda import softmax as solution": ("launch_refused", "expected the axes", None),
    "from torch.utils.cpp_extension import load_inline": ("unsupported", "load_inline. are not supported yet", 1),
    "def solution(x):\n    with open('x') as f:\n        pass": ("host_error", "FileNotFoundError", 2),
}  # fmt: skip


@pytest.mark.parametrize("source", ERRORS)
def test_why_not(source: str) -> None:
    code, message, line = ERRORS[source]
    found = failure(source)
    assert found.code == code, found
    assert re.search(message, found.message), found
    if line is not None:
        assert found.where is not None
        assert (found.where.file, found.where.line) == (FILE, line)


def test_what_is_printed_is_bounded_and_nothing_more() -> None:
    found = captured(PLAIN + "import sys\nprint('z' * 10**6)\nsys.stderr.write('the end')\n")
    assert found.printed.endswith("zz\nthe end")
    assert len(found.printed) == 4096


def test_a_second_call_must_ask_for_the_same() -> None:
    cached = CUDA + "CACHE = {}\ndef solution(x):\n    if x.size in CACHE:\n        return CACHE[x.size]\n"
    body = LAUNCH.format(factor=2.0, n="x.size").replace("return y", "CACHE[x.size] = y\n    return y")
    assert captured(cached + body).differs
    workspace = CUDA + "KEPT = {}\ndef solution(x):\n    w = KEPT[0] if KEPT else tt.empty(64)\n    KEPT[0] = w\n"
    body = LAUNCH.format(factor=1.0, n=64).replace("KERNEL", "KERNEL[1, 64](x, w, 3.0, 64)\n    KERNEL")
    assert not captured(workspace + body).differs


def test_arrays_of_the_module_belong_to_every_call() -> None:
    source = CUDA + "TABLE = tt.zeros(64)\nTABLE[3:] = 2\n" + "def solution(x):\n" + LAUNCH.format(factor=1, n=64)
    first, second = captured(source.replace("(x, y,", "(TABLE, y,"), size(64), size(64)).plans
    assert kinds(first.nodes) == kinds(second.nodes) == ["Allocate", "Fill", "Fill", "Allocate", "Launch"]


def test_tampering_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", time.time)  # so that it is put back
    assert captured("import time\ntime.time = lambda: 0.0\n" + PLAIN).tampered == ("time.time",)
    assert sys.modules["candidate"].time is time


def test_nki_candidates() -> None:
    source = """
import nki
import nki.language as nl
import neuronxcc.nki as beta

@nki.jit
def double(x):
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(y, nl.multiply(nl.load(x), 2.0))
    return y

def solution(x):
    return double(x.reshape(1, x.size)).reshape(x.size)
"""
    plan = captured(source).plans[0]
    assert kinds(plan.nodes) == ["Allocate", "Launch"]
    assert [program.machine for program in plan.programs.values()] == ["neuron"]
