"""A PTX module from the cache: what launchers need is there without parsing, the rest is parsed when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import triptych as tt
from triptych.core.errors import MemoryFault, PtxSyntaxError
from triptych.gpu.run import module
from triptych.gpu.run.kernel import kernel_of
from triptych.gpu.run.module import GpuModule, Parameter, load
from triptych.gpu.syntax.ast import Module

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
TEXT = (
    HEAD
    + """
.global .align 4 .u32 counter = 7;
.const .align 8 .u64 table[2] = {counter, 5};
.shared .align 4 .b8 tile[12];
.visible .entry first(.param .u64 .ptr .global .align 16 first_0, .param .u32 first_1)
.reqntid 32, 2
{
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [first_0];
	st.global.u32 [%rd1+128], 1;
	st.shared.u32 [tile], 1;
	ret;
}
.visible .entry second()
.maxntid 64, 1, 1
{
	ret;
}
"""
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path) -> Iterator[None]:
    with tt.scope(cache_folder=tmp_path / "cache"):
        yield


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are parsed from here on."""
    texts: list[str] = []
    parse = module.parse_lazily

    def noting(text: str) -> Module:
        texts.append(text)
        return parse(text)

    monkeypatch.setattr(module, "parse_lazily", noting)
    return texts


def test_known_text_is_not_parsed_again(parsed: list[str]) -> None:
    made = GpuModule(TEXT)
    assert parsed == [TEXT]
    found = GpuModule(TEXT)
    assert parsed == [TEXT]
    for each in (made, found):
        assert list(each.entries) == ["first", "second"]
        first, second = each.entries.values()
        assert first.parameters == (
            Parameter("first_0", "u64", 8, 8, is_pointer=True),
            Parameter("first_1", "u32", 4, 4, is_pointer=False),
        )
        assert (first.required_block, first.max_threads, first.static_shared_bytes) == ((32, 2, 1), 64, 12)
        assert (second.parameters, second.required_block, second.max_threads) == ((), None, 64)
        assert [(v.name, v.space) for v in each.variables] == [("counter", "global"), ("table", "const")]
    assert found.variables == made.variables
    assert found.key == made.key
    assert parsed == [TEXT]


def test_variables_of_128_bits() -> None:
    text = """
.global .b128 room[4];
.const .b128 nothing;
.global .b128 given[2] = {5, 7};
.visible .entry inside(.param .u64 out)
{
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [out];
	mov.u64 %rd2, 9;
	st.global.u64 [room+56], %rd2;
	ld.global.u64 %rd3, [room+56];
	st.global.u64 [%rd1], %rd3;
	ld.const.u64 %rd3, [nothing+8];
	st.global.u64 [%rd1+8], %rd3;
	ld.global.u64 %rd3, [given+16];
	st.global.u64 [%rd1+16], %rd3;
	ret;
}
.visible .entry beyond()
{
	.reg .b64 %rd<2>;
	ld.global.u64 %rd1, [room+64];
	ret;
}
"""
    module_ = tt.ptx.compile(HEAD.replace("8.0", "8.3") + text)
    out = np.full(3, 1, np.uint64)
    module_["inside"][1, 1](out)
    assert out.tolist() == [9, 0, 7]
    with pytest.raises(MemoryFault, match=r"1 byte after .* 'room' .* of 64 bytes"):
        module_["beyond"][1, 1]()


def test_syntax_tree_is_parsed_when_asked_for(parsed: list[str]) -> None:
    made, found = GpuModule(TEXT), GpuModule(TEXT)
    assert found.module == made.module
    assert found.module is found.module
    assert parsed == [TEXT, TEXT]


BROKEN = TEXT.replace("ld.param.u64 %rd1, [first_0];", "ld.param.u64 %rd7, [first_0];")


def test_a_function_is_parsed_when_it_is_asked_for() -> None:
    made = GpuModule(BROKEN)
    assert list(made.entries) == ["first", "second"]
    assert "first" in made.entries
    assert made.entries["second"].max_threads == 64
    for ask in (lambda: made.entries["first"], lambda: GpuModule(BROKEN).module.functions["first"], made.require_valid):
        with pytest.raises(PtxSyntaxError, match="undeclared register '%rd7'") as caught:
            ask()
        assert caught.value.where is not None
        assert caught.value.where.line == 1 + BROKEN[: BROKEN.index("%rd7")].count("\n")
    with pytest.raises(KeyError):
        made.entries["third"]


def test_text_of_the_authors_own_is_checked_at_once(parsed: list[str]) -> None:
    with pytest.raises(PtxSyntaxError, match="undeclared register '%rd7'"):
        tt.ptx.compile(BROKEN)
    assert tt.ptx.compile(TEXT).names == ("first", "second")
    load.cache_clear()  # as in a new process
    assert tt.ptx.compile(TEXT).names == ("first", "second")
    assert parsed == [BROKEN, TEXT]


def test_another_text_is_another_module() -> None:
    assert GpuModule(TEXT).key != GpuModule(TEXT + "\n").key
    assert list(GpuModule(HEAD).entries) == []


def test_text_that_is_no_ptx_is_refused_each_time(parsed: list[str]) -> None:
    for _ in range(2):
        with pytest.raises(PtxSyntaxError):
            GpuModule(TEXT[:-3])
    assert len(parsed) == 2


def test_fault_of_a_cached_kernel_is_explained(parsed: list[str]) -> None:
    text = TEXT.replace(".reqntid 32, 2\n", "")
    for _ in range(2):
        load.cache_clear()  # as in a new process
        kernel_of.cache_clear()
        with pytest.raises(MemoryFault, match=r"(?s)out of bounds.*st\.global\.u32.*PTX line 12"):
            tt.ptx.compile(text)["first"][1, 1](np.zeros(8, np.int32), 0)
    assert len(parsed) == 2
