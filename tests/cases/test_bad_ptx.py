"""Case: PTX that is cut short, damaged or beyond what runs: one clear error, at the line, before anything runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from case_helpers import line_of, refused

import triptych as tt

SAMPLES = Path(__file__).parents[1] / "data" / "ptx"
PTX = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    .reg .b64 %rd<5>;
    .reg .f32 %f<5>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, 0;
    BODY
    ret;
}
"""
AT = 12
"""The line of the body."""


def run(body: str) -> None:
    out = np.zeros(64, np.float32)
    try:
        tt.ptx.compile(PTX.replace("BODY", body))["k"][1, 32](out)
    finally:
        assert not out.any()


def test_cut_at_every_byte() -> None:
    """Cutting never gives anything but a syntax error, or a module that lacks the kernel or has all of it."""
    source = 'extern "C" __global__ void scale(float *p, int n) { if (threadIdx.x < n) p[threadIdx.x] *= 2; }\n'
    text = tt.cuda.compile(source, arch="sm_90").ptx
    end = text.rindex("}")
    refusals = 0
    for cut in range(len(text)):
        error, names = compiled(text[:cut])
        if error is None:
            assert names == (("scale",) if cut > end else ())
        else:
            assert error.where is not None, error
            assert error.where.line >= 1
            refusals += 1
    assert refusals > 0.9 * end


def compiled(text: str) -> tuple[tt.PtxSyntaxError | None, tuple[str, ...]]:
    """The syntax error of a text, or its kernels' names."""
    try:
        return None, tt.ptx.compile(text + "\n").names
    except tt.PtxSyntaxError as error:
        return error, ()


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.ptx")), ids=lambda path: path.name)
def test_real_texts_cut_in_many_places(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    places = np.random.default_rng(5).integers(text.index(".entry"), text.rindex("}"), 8)
    for cut in places:
        with pytest.raises(tt.PtxSyntaxError) as caught:
            tt.ptx.compile(text[:cut] + "\n")
        assert caught.value.where is not None


@pytest.mark.parametrize(
    ("body", "kind", "parts"),
    [
        ("tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];", tt.UnsupportedInstruction, ("'tex.1d.v4.f32.s32'",)),
        ("tcgen05.wait::ld.sync.aligned;", tt.UnsupportedInstruction, ("'tcgen05.wait::ld.sync.aligned'",)),
        ("frobnicate.u32 %r1, %r2;", tt.UnsupportedInstruction, ("'frobnicate.u32'",)),
        ("add.f33 %r1, %r2, %r1;", tt.UnsupportedInstruction, ("'add.f33'",)),
    ],
)
def test_unsupported_instructions_are_named_with_their_line(
    body: str, kind: type[tt.TriptychError], parts: tuple[str, ...]
) -> None:
    with refused(kind, *parts, f"PTX line {AT}"):
        run(body)


@pytest.mark.parametrize(
    ("body", "message", "line"),
    [
        ("add.s32 %r1, %r9, %r1;", "undeclared register '%r9'", AT),
        ("bra NOWHERE;", "'NOWHERE'", AT),
        ("add.s32 %r1, %r2, %r2", "expected ',' or ';'", AT + 1),
        ("ld.global.f32 %f1, [nothing];", "unknown name 'nothing'", AT),
        ("ld.global.f32 %f1, [%rd1;", "expected", AT),
        ("@%p1", "can be reached without 'ret'", AT + 1),
        ("{ {", "cut short", 5),
        ("\x00", "expected an instruction", AT),
        ("mov.u32 %r1, 0x;", "", AT),
        ("mov.u32 %r1, 99999999999999999999999;", "", AT),
        ("café;", "", AT),
    ],
)
def test_syntax_errors_are_at_their_line(body: str, message: str, line: int) -> None:
    with refused(tt.PtxSyntaxError, message) as caught:
        run(body)
    assert caught.value.where is not None
    assert caught.value.where.line == line


def test_inline_assembly_that_is_not_supported_is_at_the_author_s_line() -> None:
    source = """
extern "C" __global__ void k(float *p) {
    p[threadIdx.x] = 1.0f;
    asm volatile("tcgen05.wait::ld.sync.aligned;");
}
"""
    out = np.zeros(32, np.float32)
    with refused(tt.UnsupportedInstruction, "'tcgen05.wait::ld.sync.aligned'", "PTX line") as caught:
        tt.cuda.compile(source, arch="sm_90a")["k"][1, 32](out)
    assert caught.value.where is not None
    assert caught.value.where.file == __file__
    assert line_of(caught.value) == 'asm volatile("tcgen05.wait::ld.sync.aligned;");'
    assert not out.any()


@pytest.mark.parametrize(
    "text",
    ["\n", "\x7fELF\x02\x01\n", ".version 8.0\n", ".version 8.0\n.target\n", "{;}\n", "// nothing but a comment\n"],
)
def test_what_is_no_ptx_at_all(text: str) -> None:
    with refused(tt.PtxSyntaxError, "expected"):
        tt.ptx.compile(text)


def test_a_file_that_is_not_there_and_a_file_with_an_error(tmp_path: Path) -> None:
    with refused(tt.UsageError, "cannot read the PTX", "none.ptx", "pass the path"):
        tt.ptx.compile(tmp_path / "none.ptx")
    file = tmp_path / "bad.ptx"
    file.write_text(PTX.replace("BODY", "add.s32 %r1, %r9, %r1;"), encoding="utf-8")
    with refused(tt.PtxSyntaxError, "undeclared register '%r9'", f"{file}:{AT}"):
        tt.ptx.compile(file)


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("ld.param.u32 %r2, [p+8];", tt.UnsupportedInstruction, "of 8 bytes of parameters"),
        ("ld.param.u32 %r2, [p+-4];", tt.UnsupportedInstruction, "of 8 bytes of parameters"),
        ("ld.param.v4.u32 {%r1, %r2, %r3, %r4}, [p];", tt.UnsupportedInstruction, "of 8 bytes of parameters"),
        ("mov.u64 %rd2, p; ld.param.u32 %r2, [%rd2+8];", tt.MemoryFault, "Invalid __param__ read of size 4"),
        ("mov.u64 %rd2, p; ld.param.u32 %r2, [%rd2+-4];", tt.MemoryFault, "Invalid __param__ read of size 4"),
        ("ld.param.u32 %r2, [%rd1];", tt.MemoryFault, "Invalid __param__ read of size 4"),
        ("st.param.u32 [p], %r1;", tt.UnsupportedInstruction, "read-only"),
    ],
)
def test_parameters_have_bounds(body: str, kind: type[tt.TriptychError], message: str) -> None:
    with refused(kind, message):
        run(body)


def test_a_parameter_at_a_register_s_address() -> None:
    out = np.zeros(32, np.uint32)
    body = "mov.u64 %rd2, p; ld.param.u32 %r2, [%rd2]; ld.param.u32 %r3, [%rd2+4]; st.global.v2.u32 [%rd1], {%r2, %r3};"
    tt.ptx.compile(PTX.replace("BODY", body))["k"][1, 1](out)
    assert out[:2].tobytes() == tt.data_ptr(out).to_bytes(8, "little")


def test_damaged_ptx_gives_an_error_of_triptych_or_runs() -> None:
    """Lines dropped or swapped, operands changed: whatever happens, it is no internal error."""
    generator = np.random.default_rng(11)
    paths = [path for path in sorted(SAMPLES.glob("*.90.ptx")) if path.stat().st_size < 8000]
    internal: list[str] = []
    for number in range(60):
        lines = damage(paths[number % len(paths)].read_text(encoding="utf-8"), generator)
        try:
            module = tt.ptx.compile("\n".join(lines))
            kernel = module[module.names[0]]
            with tt.scope(budget=2000):
                kernel[1, 64, 1024](
                    *(argument(parameter.type, parameter.size) for parameter in kernel.entry.parameters)
                )
        except tt.TriptychError:
            continue
        except Exception as error:
            internal.append(f"{paths[number % len(paths)].name}: {type(error).__name__}: {error}")
    assert not internal


def damage(text: str, generator: np.random.Generator) -> list[str]:
    """The lines of the text with one instruction dropped, swapped with another, or with a part of it replaced."""
    lines = text.splitlines()
    body = [index for index, line in enumerate(lines) if re.match(r"\s+(@|[a-z]).*;", line)]
    first, second = (body[int(generator.integers(len(body)))] for _ in range(2))
    parts = re.findall(r"%\w+|[\w.$]+|\S|\s+", lines[first])
    spare = ["%p1", "%r1", "%rd1", "%f1", "0", "-1", "0f3F800000", "%tid.x", "[%rd1]", "{%r1,%r2}", ""]
    match int(generator.integers(4)):
        case 0:
            lines[first] = ""
        case 1:
            lines[first], lines[second] = lines[second], lines[first]
        case 2:
            parts[int(generator.integers(len(parts)))] = str(generator.choice(spare))
            lines[first] = "".join(parts)
        case _:
            others = re.findall(r"%\w+|[\w.$]+", lines[second])
            parts[int(generator.integers(len(parts)))] = str(generator.choice(others))
            lines[first] = "".join(parts)
    return lines


def argument(kind: str, size: int) -> object:
    """Something that a parameter of the type takes."""
    if kind in ("u64", "b64"):
        return np.zeros(4096, np.float32)
    return bytes(size) if kind == "b8" else 1.0 if kind.startswith("f") else 8
