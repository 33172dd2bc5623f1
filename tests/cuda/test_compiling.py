from __future__ import annotations

import linecache
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import triptych as tt
from triptych.core.errors import CompileError, UnknownName, UnsupportedInstruction, UsageError
from triptych.core.settings import scope
from triptych.core.source import BUILT_IN_HEADER
from triptych.languages.cuda import nvrtc
from triptych.languages.cuda.compiling import CACHE_KIND, check_options, listed
from triptych.languages.cuda.includes import included_files
from triptych.languages.cuda.toolkit import STUBS, toolkit

TARGET = "sm_80"


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "cache"
    with scope(cache_folder=folder):
        yield folder


def entries(folder: Path) -> int:
    return len([path for path in (folder / CACHE_KIND).rglob("*") if path.is_file()])


def lines_of(ptx: str) -> tuple[str, set[int]]:
    """The one file that the PTX names, and its lines."""
    (file,) = re.findall(r'\.file\s+1 "(.*?)"', ptx)
    return file, {int(line) for line in re.findall(r"\.loc\s+1 (\d+)", ptx)}


def test_literal_keeps_its_place_in_this_file() -> None:
    module = tt.cuda.compile(
        """
extern "C" __global__ void k(int *p) {
    p[threadIdx.x] = 1;  // the marked line
}
""",
        arch=TARGET,
    )
    file, lines = lines_of(module.ptx)
    text = Path(__file__).read_text().splitlines()
    marked = next(number for number, line in enumerate(text, 1) if line.endswith("// the marked line"))
    assert file == str(Path(__file__))
    assert marked in lines


def test_error_in_a_literal_is_at_this_files_line() -> None:
    source = r"""
extern "C" __global__ void k(int *p) {
    p[0] = undefined_name;
}"""
    with pytest.raises(CompileError, match='identifier "undefined_name" is undefined') as caught:
        tt.cuda.compile(source, arch=TARGET)
    where = caught.value.where
    assert where is not None
    assert where.file == str(Path(__file__))
    assert where.text == "p[0] = undefined_name;"


def test_text_of_no_file_has_a_name_of_its_own() -> None:
    module = tt.cuda.compile(textwrap.dedent("""
        extern "C" __global__ void k(int *p) {
            p[0] = 1;
        }
        """), arch=TARGET)  # fmt: skip
    file, lines = lines_of(module.ptx)
    assert re.fullmatch(r"<cuda source [0-9a-f]{8}>", file)
    assert "p[0] = 1;" in {linecache.getline(file, line).strip() for line in lines}


def test_path_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a kernel.cu"
    path.write_text('extern "C" __global__ void k(int *p) {\n  p[0] = 1;\n}\n')
    for source in (path, str(path)):
        file, lines = lines_of(tt.cuda.compile(source, arch=TARGET).ptx)
        assert file == str(path)
        assert 2 in lines
    path.write_text('extern "C" __global__ void k(int *p) {\n  p[0] = 1\n}\n')
    with pytest.raises(CompileError, match='expected a ";"') as caught:
        tt.cuda.compile(path, arch=TARGET)
    assert str(caught.value.where) == f"{path}:3"


def test_file_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="cannot read the CUDA source: No such file"):
        tt.cuda.compile("missing.cu", arch=TARGET)


def test_warnings_are_kept() -> None:
    source = 'extern "C" __global__ void k(int *p) { int unused; p[0] = 1; }'
    for _ in range(2):  # from the compiler, then from the cache
        assert "was declared but never referenced" in tt.cuda.compile(source, arch=TARGET).log


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_100"])
def test_targets(target: str) -> None:
    module = tt.cuda.compile("__global__ void k(int *p) { *p = 1; }", arch=target)
    assert f".target {target}\n" in module.ptx
    assert module.target == target


def test_target_is_that_of_the_chip_in_force() -> None:
    with tt.profile(chip="a100-80"):
        assert tt.cuda.compile("__global__ void k(int *p) { *p = 1; }").target == "sm_80"


@pytest.mark.parametrize("target", ["sm_70", "sm_9", "compute_80", "80", "sm_80x"])
def test_unknown_target(target: str) -> None:
    with pytest.raises(UnknownName, match=f"unknown compile target '{target}'"):
        tt.cuda.compile("__global__ void k(int *p) { *p = 1; }", arch=target)


def test_options() -> None:
    source = "__global__ void k(float *p) { *p = p[1] * p[2] + N; }"
    fused = tt.cuda.compile(source, arch=TARGET, options=["-DN=4"]).ptx
    apart = tt.cuda.compile(source, arch=TARGET, options=["-DN=4", "--fmad=false"]).ptx
    assert "fma.rn.f32" in fused
    assert "fma.rn.f32" not in apart
    with pytest.raises(CompileError, match='identifier "N" is undefined'):
        tt.cuda.compile(source, arch=TARGET)
    with pytest.raises(CompileError, match="unrecognized option"):
        tt.cuda.compile(source, arch=TARGET, options=["--no-such-option"])
    with pytest.raises(UsageError, match="expected a list of strings"):
        tt.cuda.compile(source, arch=TARGET, options="-DN=4")
    newer = tt.cuda.compile(
        "__global__ void k(auto *p) requires true { *p = 1; } template __global__ void k<int>(int *p);",
        arch=TARGET,
        options=["--std=c++20"],
    )
    assert newer.names == ("k<int>",)


ANYWAY = ("-lineinfo", "--generate-line-info", "-default-device", "-std=c++20", "--std=c++14")


@pytest.mark.parametrize("option", ANYWAY)
def test_options_that_are_asked_for_anyway_can_be_given(option: str) -> None:
    module = tt.cuda.compile('extern "C" __global__ void k(float *p) { *p = INFINITY; }', TARGET, [option])
    assert module.names == ("k",)
    assert ".loc" in module.ptx


def test_a_name_of_a_template_is_no_option() -> None:
    with pytest.raises(UsageError, match="expected a list of strings, got 'k<int>'"):
        tt.cuda.compile("template <class T> __global__ void k(T *p) {}", TARGET, names="k<int>")


def test_folders_of_headers_become_absolute() -> None:
    here = Path.cwd()
    assert listed(["-I", "saxpy<float>"]) == ("-I", "saxpy<float>")  # names are no options
    assert check_options(["-I", "a", "-Ib", "--include-path=c", "-I/d", "-DN"]) == (
        f"--include-path={here}/a", f"--include-path={here}/b", f"--include-path={here}/c", "--include-path=/d", "-DN"
    )  # fmt: skip


HEADERS = """#include <stdio.h>
#include <stdlib.h>
#include <assert.h>
#include <stdint.h>
#include <math.h>
#include <limits.h>
#include <float.h>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <mma.h>
#include <cstdio>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <vector>
extern "C" __global__ void k(float *p, uint32_t n, __half h, std::size_t m) {
    assert(n < INT_MAX);
    if (p[0] < INFINITY) printf("%f", M_PI);
    p[0] = std::sqrt(p[1]) + FLT_MAX + std::abs(p[2]) + __half2float(h) + (float)m;
}
"""


def test_headers_of_the_host_and_the_toolkit() -> None:
    ptx = tt.cuda.compile(HEADERS, arch=TARGET).ptx
    assert "vprintf" in ptx
    assert "__assertfail" in ptx


def test_host_code_gets_advice() -> None:
    source = "__global__ void k(int *p) {}\nvoid host() { int *p; cudaMalloc(&p, 4); }\n"
    with pytest.raises(CompileError) as caught:
        tt.cuda.compile(source, arch=TARGET)
    assert caught.value.hint is not None
    assert "#ifndef __CUDACC_RTC__" in caught.value.hint


def test_cache_is_used_while_nothing_changed(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "__global__ void k(int *p) { *p = 1; }"
    first = tt.cuda.compile(source, arch=TARGET)
    assert entries(cache_folder) == 1
    tt.cuda.compile(source, arch="sm_90")
    tt.cuda.compile(source, arch=TARGET, options=["-DN=1"])
    tt.cuda.compile(source + " ", arch=TARGET)
    assert entries(cache_folder) == 4

    def never(*arguments: object) -> nvrtc.Compiled:
        raise AssertionError("compiled again")

    monkeypatch.setattr(nvrtc, "compile_program", never)
    assert tt.cuda.compile(source, arch=TARGET).ptx == first.ptx


def test_changed_header_means_a_new_kernel(tmp_path: Path, cache_folder: Path) -> None:
    (tmp_path / "include").mkdir()
    header, inner = tmp_path / "include" / "outer.h", tmp_path / "include" / "inner.h"
    header.write_text('#include "inner.h"\n')
    path = tmp_path / "k.cu"
    path.write_text('#include <outer.h>\nextern "C" __global__ void k(int *p) { *p = VALUE; }\n')
    options = ["-I", str(tmp_path / "include")]
    for value in (1234, 4321, 1234):
        inner.write_text(f"#define VALUE {value}\n")
        assert f", {value};" in tt.cuda.compile(path, arch=TARGET, options=options).ptx
    assert entries(cache_folder) == 2


def test_header_beside_the_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "value.h").write_text("#define VALUE 77\n")
    (tmp_path / "k.cu").write_text('#include "value.h"\nextern "C" __global__ void k(int *p) { *p = VALUE; }\n')
    assert ", 77;" in tt.cuda.compile(tmp_path / "k.cu", arch=TARGET).ptx


def test_a_kernel_of_a_header_has_its_parameters_names(tmp_path: Path) -> None:
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / "kernels.cuh").write_text(
        'extern "C" __global__ void fill(float *values, int count) { *values = count; }'
    )
    (tmp_path / "own.cuh").write_text('extern "C" __global__ void copy(int *to, int *from); __global__ void b(int x);')
    path = tmp_path / "k.cu"
    own = 'extern "C" __global__ void copy(int *target, int *source) { *target = *source; }\n'
    path.write_text(f'#include <kernels.cuh>\n#include "own.cuh"\n{own}')
    module = tt.cuda.compile(path, arch=TARGET, options=["-I", str(folder)])
    assert module["fill"].signature == "fill(float* values, int count)"
    assert module["copy"].signature == "copy(int* target, int* source)"
    with pytest.raises(tt.ArgumentError, match=r"argument 1 \(count\): expected int, got str"):
        module["fill"][1, 1](None, "3")


@pytest.mark.parametrize(
    ("header", "advice"),
    [
        ("curand_extra_kernel.h", "pip install nvidia-curand"),
        ("cublas_extra.h", "pip install nvidia-cublas"),
        ("cooperative_groups/extra.h", "pip install nvidia-cuda-runtime"),
        ("cub/extra.cuh", "pip install nvidia-cuda-cccl"),
        ("crt/extra.h", "pip install nvidia-cuda-crt"),
        ("mine/helpers.cuh", "options=['-I', 'folder'], where 'folder/mine/helpers.cuh' is the file"),
    ],
)
def test_a_header_that_is_not_there_gets_advice(header: str, advice: str) -> None:
    with pytest.raises(CompileError, match="source file") as caught:
        tt.cuda.compile(f"#include <{header}>\n__global__ void k() {{}}\n", arch=TARGET)
    assert caught.value.hint is not None
    assert advice in caught.value.hint
    assert caught.value.where is not None
    assert caught.value.where.text.startswith("#include <") or caught.value.where.line == 1


def test_no_built_in_header_is_shown_by_a_path() -> None:
    source = """
        __device__ float look(cudaTextureObject_t texture, float x) { return tex1D<float>(texture, x); }
        extern "C" __global__ void k(float *out, cudaTextureObject_t texture) { *out = look(texture, 0.5f); }
    """
    module = tt.cuda.compile(source, arch=TARGET)
    assert f'"{BUILT_IN_HEADER}"' in module.ptx
    assert f"/{BUILT_IN_HEADER}" not in module.ptx
    with pytest.raises(tt.TriptychError) as caught:
        module["k"][1, 1](np.zeros(1, np.float32), 0)
    where = caught.value.where
    assert where is not None
    assert where.file == __file__
    assert "tex1D<float>" in where.text
    assert BUILT_IN_HEADER not in str(caught.value)


def test_header_named_by_a_macro_is_never_cached(tmp_path: Path, cache_folder: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text('#define WHICH "value.h"\n#include WHICH\nextern "C" __global__ void k(int *p) { *p = VALUE; }\n')
    for value in (11, 22):
        (tmp_path / "value.h").write_text(f"#define VALUE {value}\n")
        assert f", {value};" in tt.cuda.compile(path, arch=TARGET).ptx
    assert not (cache_folder / CACHE_KIND).exists()


def test_included_files_are_followed_once(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text('#include "b.h"\n#include <missing.h>\n')
    (tmp_path / "b.h").write_text(' # include "a.h"\n')
    found = included_files('#include "a.h"\n// #include "c.h"\n', tmp_path, ())
    assert found is not None
    assert {path.name for path in found} == {"a.h", "b.h"}
    assert included_files('#include "a.h"', None, (tmp_path,)) == found
    assert included_files("#include MACRO(x)\n", tmp_path, ()) is None


def test_toolkit_is_whole() -> None:
    found = toolkit()
    assert found.library.is_file()
    assert (found.includes[0] / "cuda_fp16.h").is_file()
    assert any((folder / "cuda" / "std" / "cstdint").is_file() for folder in found.includes)
    assert (STUBS / "stdio.h").is_file()
    assert nvrtc.version() >= (12, 0)
    assert {80, 90} <= set(nvrtc.architectures())


def test_a_nul_character_is_refused_with_its_line() -> None:
    with pytest.raises(CompileError, match="NUL") as caught:
        tt.cuda.compile('extern "C" __global__ void k(float* x) {\n  x[0] = 1;\n}\n' + "\0 garbage")
    assert caught.value.where is not None
    assert caught.value.where.line == 4


def test_options_that_leave_no_ptx() -> None:
    with pytest.raises(CompileError, match="made no PTX") as caught:
        tt.cuda.compile('extern "C" __global__ void nothing_left(float* x) { x[0] = 1; }', options=["-dlto"])
    assert "-dlto" in caught.value.message
    assert caught.value.hint is not None


def test_an_unsupported_instruction_in_a_header_names_the_authors_line() -> None:
    text = """
        __device__ __forceinline__ void inner() { asm volatile("tcgen05.wait::ld.sync.aligned;"); }
        extern "C" __global__ void outer_kernel() {
            inner();
        }
    """
    module = tt.cuda.compile(text, arch="sm_100a")
    with pytest.raises(UnsupportedInstruction, match="tcgen05") as caught:
        module["outer_kernel"][1, 32]()
    where, frames = caught.value.where, caught.value.frames
    assert where is not None
    assert [frame.line - where.line for frame in frames] == [2]
    assert f"called from {frames[0]}" in str(caught.value)
