from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import triptych as tt
from triptych.core.errors import ArgumentError, PtxSyntaxError, UnknownName, UsageError

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry _Z6doublePfi(.param .u64 out, .param .u32 n) {
    .reg .pred %p; .reg .b32 %r<4>; .reg .f32 %f<2>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    setp.ge.u32 %p, %r2, %r1;
    @%p ret;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3];
    add.f32 %f1, %f1, %f1;
    st.global.f32 [%rd3], %f1;
    ret;
}
"""


@pytest.mark.parametrize("name", ["_Z6doublePfi", "double"])
def test_kernel_of_a_text(name: str) -> None:
    module = tt.ptx.compile(PTX)
    data = np.arange(32, dtype=np.float32)
    with tt.profile(chip="h100") as profile:
        module[name][1, 32](data, 20)
    assert np.array_equal(data, np.arange(32) * np.where(np.arange(32) < 20, 2, 1))
    record = profile.launches[0].record
    assert (record.language, record.target, record.kernel) == ("ptx", "sm_80", "double")
    assert (module.target, module.names) == ("sm_80", ("_Z6doublePfi",))
    assert repr(module[name]) == "<ptx kernel double(.u64, .u32)>"


def test_kernel_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(PTX)
    assert tt.ptx.compile(path).ptx == tt.ptx.compile(str(path)).ptx == PTX
    with pytest.raises(UsageError, match="cannot read the PTX: No such file"):
        tt.ptx.compile(tmp_path / "missing.ptx")


@pytest.mark.parametrize("length", [0, *range(2, 15)])
def test_a_text_cut_short_is_no_path(length: int) -> None:
    for text in (PTX, "// Generated\n" + PTX, "/* 1.0 */" + PTX):
        with pytest.raises(PtxSyntaxError):
            tt.ptx.compile(text[:length])
    with pytest.raises(PtxSyntaxError, match="cut short"):
        tt.ptx.compile("")
    with pytest.raises(PtxSyntaxError, match="cut short"):
        tt.ptx.compile(".version 8.0")


def test_a_name_is_a_path_where_it_may_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("kernel", ".kernel"):
        (tmp_path / name).write_text(PTX)
        assert tt.ptx.compile(name).ptx == tt.ptx.compile(f"./{name}").ptx == PTX
    for name in ("missing.ptx", "./missing.ptx", "../missing.ptx"):
        with pytest.raises(UsageError, match="cannot read the PTX: No such file"):
            tt.ptx.compile(name)
    with pytest.raises(UsageError, match="cannot read the PTX: Is a directory"):
        tt.ptx.compile(tmp_path)
    for text in ("kernel_of_mine", "x" * 5000):
        with pytest.raises(PtxSyntaxError, match=r"expected '.version'"):
            tt.ptx.compile(text)


def test_syntax_errors_carry_the_line(tmp_path: Path) -> None:
    broken = PTX.replace("mov.u32 %r2, %tid.x;", "mov.u32 %r2 %tid.x;")
    with pytest.raises(PtxSyntaxError) as caught:
        tt.ptx.compile(broken)
    assert caught.value.where is not None
    assert caught.value.where.line == 8
    path = tmp_path / "k.ptx"
    path.write_text(broken)
    with pytest.raises(PtxSyntaxError) as caught:
        tt.ptx.compile(path)
    assert str(caught.value.where) == f"{path}:8"


def test_unknown_kernel_and_arguments() -> None:
    module = tt.ptx.compile(PTX)
    with pytest.raises(UnknownName, match="unknown kernel 'triple'"):
        module["triple"]
    with pytest.raises(ArgumentError, match="kernel 'double' takes 2 arguments, got 1"):
        module["double"][1, 32](np.zeros(4, np.float32))
