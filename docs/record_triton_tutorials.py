"""Judges the operators of Triton's tutorials, writes `docs/data/triton_tutorials.json`; then run docs/generate.py.

    python docs/record_triton_tutorials.py FOLDER --version VERSION [NAME …]

FOLDER is `python/tutorials` of triton-lang/triton, which is no part of this repository. A solution is the tutorial's
own text and `solution`, which calls the function that the tutorial has for its users. Of the text, what runs its
example is cut: all from the first statement at its top level on that is an expression, a loop, an assertion or a test
whether it is the main program. What it should compute is an operator of the catalogue, or of those below, which differ
from one of it in how matrices lie in memory. What is not named keeps what was recorded of it.
"""

from __future__ import annotations

import argparse
import ast
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np

from triptych import judge
from triptych.core.dtypes import dtype_of
from triptych.operators.budgets import rounding
from triptych.operators.case import Case
from triptych.operators.catalogue import operator
from triptych.operators.formula import Formula
from triptych.operators.matmul import product_error
from triptych.operators.operator import Arrays, Operator, Outputs, Parameter, Size, Values

DATA = Path(__file__).resolve().parent / "data" / "triton_tutorials.json"
SEED = 20_000
_CUT = (ast.For, ast.While, ast.Assert)
_GROUP = 3


@dataclass(frozen=True, slots=True)
class Program:
    """What is judged of a tutorial."""

    name: str
    file: str
    operator: Operator
    dtype: str
    size: Mapping[str, int]
    solution: str
    """What stands behind the tutorial's text."""
    remark: str = ""
    """Why it does not pass, where it rightly does not."""


def _swapped(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return values.swapaxes(-1, -2)


def _transposed() -> Operator:
    """The product with a right matrix by columns: what descriptors of its tiles ask for."""

    def reference(given: Arrays, size: Values) -> Outputs:
        return (given["a"] @ _swapped(given["b"]),)

    def budget(case: Case) -> Outputs:
        return (rounding(case.truth, case.dtype) + product_error(case.given["a"], _swapped(case.given["b"])),)

    product = operator("matmul")
    inputs = (product.inputs[0], Parameter("b", "n k", "the right matrix, by columns"))
    return replace(
        product, name="matmul_transposed", inputs=inputs, reference=reference, budget=budget, wrong=(),
        computes="c[i, j] = Σ_k a[i, k] b[j, k]", text_digest="matmul_transposed",
    )  # fmt: skip


def _grouped(*, transposed: bool) -> Operator:
    """Products of several pairs of matrices of different sizes, each an array of its own."""
    axes = [(f"m{one}", f"n{one}", f"k{one}") for one in range(_GROUP)]

    def pairs(given: Arrays) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
        for one in range(_GROUP):
            right = given[f"b{one}"]
            yield given[f"a{one}"], _swapped(right) if transposed else right

    def reference(given: Arrays, size: Values) -> Outputs:
        return tuple(a @ b for a, b in pairs(given))

    def budget(case: Case) -> Outputs:
        wanted = zip(case.expected, pairs(case.given), strict=True)
        return tuple(rounding(truth, case.dtype) + product_error(a, b) for truth, (a, b) in wanted)

    name = "grouped_gemm_transposed" if transposed else "grouped_gemm"
    return replace(
        operator("matmul"), name=name, computes="c[g] = a[g] × b[g]", text_digest=name,
        inputs=(
            *(Parameter(f"a{one}", f"{m} {k}", "a left matrix") for one, (m, _, k) in enumerate(axes)),
            *(
                Parameter(f"b{one}", f"{n} {k}" if transposed else f"{k} {n}", "a right matrix")
                for one, (_, n, k) in enumerate(axes)
            ),
        ),
        outputs=tuple(Parameter(f"c{one}", f"{m} {n}", "a product") for one, (m, n, _) in enumerate(axes)),
        reference=reference, budget=budget, wrong=(),
        matrix_flops=Formula(" + ".join(f"2 * {m} * {n} * {k}" for m, n, k in axes)),
    )  # fmt: skip


def _elementwise_and_rows() -> Iterator[Program]:
    yield Program(
        "vector addition", "01-vector-add.py", operator("vec_add"), "f32", {"n": 98432},
        "def solution(a, b):\n    return add(a, b)",
    )  # fmt: skip
    yield Program(
        "addition, dependent launches", "11-programmatic-dependent-launch.py", operator("vec_add"), "f32",
        {"n": 98432}, "def solution(a, b):\n    return add(a, b)",
    )  # fmt: skip
    yield Program(
        "softmax", "02-fused-softmax.py", operator("softmax"), "f32", {"rows": 1823, "columns": 781},
        "def solution(x):\n    return softmax(x)",
    )  # fmt: skip
    yield Program(
        "layer norm", "05-layer-norm.py", operator("layer_norm"), "f16", {"rows": 151, "columns": 8192},
        "def solution(x, weight, bias, epsilon):\n    return layer_norm(x, (x.shape[1],), weight, bias, epsilon)",
    )  # fmt: skip
    solution = """
        from types import SimpleNamespace

        def solution(grad_y, x, weight, mean, rstd):
            saved = SimpleNamespace(saved_tensors=(x, weight, weight, mean, rstd), BLOCK_SIZE=1024, num_warps=4)
            grad_x, _, grad_weight, grad_bias, _ = LayerNorm.backward(saved, grad_y)
            return grad_x, grad_weight, grad_bias
        """
    for dtype, remark in (("f32", ""), ("f16", "it sums up the weights' gradients in T")):
        yield Program(
            f"layer norm, backward, {dtype}", "05-layer-norm.py", operator("layer_norm_backward"), dtype,
            {"rows": 151, "columns": 1024}, solution, remark,
        )  # fmt: skip


def _attention() -> Iterator[Program]:
    file, size = "06-fused-attention.py", {"batch": 1, "heads": 2, "heads_kv": 2, "n": 256, "n_kv": 256, "d": 64}
    forward = """
        def solution(q, k, v, causal):
            return attention(q, k, v, bool(causal), q.shape[3] ** -0.5, False)
        """
    backward = """
        from types import SimpleNamespace

        def solution(grad_out, q, k, v, out, log_sums, causal):
            saved = SimpleNamespace(
                saved_tensors=(q, k, v, out, log_sums), sm_scale=q.shape[3] ** -0.5, HEAD_DIM=q.shape[3],
                causal=bool(causal),
            )
            return _attention.backward(saved, grad_out)[:3]
        """
    yield Program("attention", file, operator("attention"), "f16", {**size, "causal": 0}, forward)
    yield Program("attention, causal", file, operator("attention"), "f16", {**size, "causal": 1}, forward)
    yield Program(
        "attention, backward", file, operator("attention_backward"), "f16", {**size, "causal": 1}, backward,
        "it scales the keys by an operation of torch",
    )  # fmt: skip


def _products() -> Iterator[Program]:
    matmul, transposed = operator("matmul"), _transposed()
    square = {"m": 256, "n": 256, "k": 256}
    groups = {"m0": 256, "n0": 128, "k0": 128, "m1": 128, "n1": 256, "k1": 64, "m2": 128, "n2": 128, "k2": 256}
    yield Program(
        "product", "03-matrix-multiplication.py", matmul, "f16", {"m": 512, "n": 512, "k": 512},
        "def solution(a, b):\n    return matmul(a, b)",
    )  # fmt: skip
    for name, function, is_transposed in (
        ("grouped product", "group_gemm_fn", False),
        ("grouped product, TMA", "group_gemm_tma_fn", True),
    ):
        yield Program(
            name, "08-grouped-gemm.py", _grouped(transposed=is_transposed), "f16", groups,
            f"def solution(a0, a1, a2, b0, b1, b2):\n    return tuple({function}([a0, a1, a2], [b0, b1, b2]))",
        )  # fmt: skip
    for name, call, of in (
        ("product, by tiles", "matmul(a, b)", matmul),
        ("product, persistent", "matmul_persistent(a, b)", matmul),
        ("product, TMA", "matmul_tma(a, b, False)", transposed),
        ("product, TMA, persistent", "matmul_tma_persistent(a, b, False)", transposed),
        ("product, descriptors, persistent", "matmul_descriptor_persistent(a, b, False)", transposed),
    ):
        yield Program(name, "09-persistent-matmul.py", of, "f16", square, f"def solution(a, b):\n    return {call}")


WITHOUT = {
    "04-low-memory-dropout.py": "dropout: which elements remain is for a generator of random numbers to say",
    "07-extern-functions.py": "the arc sine alone",
    "10-block-scaled-matmul.py": "a product of block-scaled types, for chips of compute capability 10",
}
"""Tutorials that compute what no operator is, and what that is."""


def without_example(text: str) -> str:
    """A tutorial's text up to where it runs its example."""
    body = ast.parse(text).body
    lines = text.splitlines()
    for statement in body[1:]:  # the first is its docstring
        if isinstance(statement, (ast.Expr, *_CUT)) or _is_main(statement):
            return "\n".join(lines[: statement.lineno - 1]) + "\n"
    return text


def _is_main(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test).startswith("__name__ ==")


def _record(one: Program, folder: Path, pool: judge.Pool) -> dict[str, Any]:
    text = without_example((folder / one.file).read_text(encoding="utf-8"))
    source = f"{text}\n\n{dedent(one.solution).strip()}\n"
    size = Size("tutorial", one.size, "as the tutorial, or small")
    task = judge.Task(one.operator, (size,), dtype_of(one.dtype), (), SEED)
    began = time.monotonic()
    score = pool.score(judge.Candidate(source, one.file), task)
    reason = score.reason
    return {
        "file": one.file,
        "operator": one.operator.name,
        "dtype": one.dtype,
        "size": dict(one.size),
        "verdict": score.verdict.outcome.value,
        "code": "" if reason is None else reason.code,
        "message": "" if reason is None else reason.message,
        "remark": "" if score.passed else one.remark,
        "reward": score.reward,
        "launches": len(score.launches),
        "cpu_s": round(score.cpu_s, 1),
        "wall_s": round(time.monotonic() - began, 1),
    }


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--version", required=True, help="the repository and the commit that FOLDER is of")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_intermixed_args()
    recorded: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {"programs": {}}
    recorded |= {"version": asked.version, "triton": version("triton"), "torch": version("torch"), "without": WITHOUT}
    programs = {one.name: one for one in chain(_elementwise_and_rows(), _attention(), _products())}
    with judge.Pool(1) as pool:
        for name in asked.names or programs:
            found = recorded["programs"][name] = _record(programs[name], asked.folder, pool)
            print(name, found, flush=True)
            recorded["unrecorded"] = [one for one in programs if one not in recorded["programs"]]
            DATA.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
