"""Case: CUDA C++ that does not compile is the compiler's own message, with the file and the line."""

from __future__ import annotations

from pathlib import Path

import pytest
from case_helpers import line_of, refused

import triptych as tt

SYNTAX = """extern "C" __global__ void scale(float *p) {
    int i = threadIdx.x
    p[i] *= 2.0f;
}
"""


def test_a_syntax_error_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "scale.cu"
    file.write_text(SYNTAX, encoding="utf-8")
    with refused(tt.CompileError, f'{file}(3): error: expected a ";"', "1 error detected", f"at {file}:3") as caught:
        tt.cuda.compile(file, arch="sm_90")
    assert line_of(caught.value) == "p[i] *= 2.0f;"


def test_a_syntax_error_in_a_string_of_this_file() -> None:
    with refused(tt.CompileError, f'{__file__}({_line("int i = threadIdx.x") + 1}): error: expected a ";"') as caught:
        tt.cuda.compile(SYNTAX, arch="sm_90")
    assert line_of(caught.value) == "p[i] *= 2.0f;"


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ('extern "C" __global__ void k(float *p) { p[0] = q; }\n', ('identifier "q" is undefined',)),
        ('#include "no_such_header.h"\n__global__ void k() {}\n', ("no_such_header.h",)),
        ('extern "C" __global__ void k(float *p) { *p = 1;\n', ("error: expected a",)),
        ("int main() { cudaMalloc(0, 4); }\n", ("cudaMalloc", "device code alone")),
    ],
)
def test_other_errors_of_the_compiler(source: str, parts: tuple[str, ...]) -> None:
    with refused(tt.CompileError, *parts):
        tt.cuda.compile(source, arch="sm_90")


def test_targets_files_and_kernels_that_there_are_not(tmp_path: Path) -> None:
    with refused(tt.UnknownName, "unknown compile target 'sm_91'", "did you mean", "sm_9"):
        tt.cuda.compile("__global__ void k() {}\n", arch="sm_91")
    with refused(tt.UsageError, "none.cu"):
        tt.cuda.compile(tmp_path / "none.cu", arch="sm_90")
    module = tt.cuda.compile('extern "C" __global__ void scale() {}\n', arch="sm_90")
    with refused(tt.UnknownName, "unknown kernel 'scael'", "did you mean scale"):
        module["scael"]


def _line(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)
