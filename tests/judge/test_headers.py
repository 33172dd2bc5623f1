"""Headers of a toolkit that lies outside of Python's packages are there for a candidate's CUDA source."""

from __future__ import annotations

from pathlib import Path

import pytest

from triptych import judge, operators
from triptych.judge import workshop
from triptych.languages.cuda import toolkit

SOURCE = '''
import triptych as tt

KERNEL = tt.cuda.compile("""
#include <{header}>
extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = SUM(a[i], b[i]);
}}
""", options=["-I", {folder!r}])["add"]


def solution(a, b):
    c = tt.empty(a.shape, a.dtype)
    KERNEL[-(-a.size // 256), 256](a, b, c, a.size)
    return c
'''


def test_headers_of_the_systems_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cuda", "private"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}_sum.h").write_text("#define SUM(a, b) ((a) + (b))\n", "utf-8")
    assert workshop.COMPILERS == (toolkit.SYSTEM,)
    monkeypatch.setattr(workshop, "COMPILERS", (tmp_path / "cuda", tmp_path / "not there"))
    task = judge.task(operators.operator("vec_add"), seed=1)
    codes: list[str] = []
    with judge.Pool(1) as pool:
        for name in ("cuda", "private"):
            source = SOURCE.format(header=f"{name}_sum.h", folder=str(tmp_path / name))
            score = pool.score(judge.Candidate(source), task)
            codes.append(score.reason.code if score.reason else score.verdict.outcome.value)
    assert codes == ["passed", "compile_error"]
