"""The table itself: every form's opcode finds its own row, whatever the order of its modifiers, and no other row."""

from __future__ import annotations

import random
import re

import pytest
from opcodes import read_opcode, some_opcodes_of

from triptych.gpu import isa
from triptych.gpu.isa import MODULES, TABLE, Row, find_form
from triptych.gpu.syntax import parse, print_instruction
from triptych.gpu.syntax.ast import Instruction


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.syntax.partition(' ')[0]}:{row.types.replace(' ', ',')}")
def test_an_opcode_finds_its_row(row: Row) -> None:
    source = random.Random(row.syntax)
    for opcode in some_opcodes_of(row, 500):
        mnemonic, *modifiers = opcode.split(".")
        kinds = list(read_opcode(opcode).types)
        loose = [name for name in modifiers if name not in kinds]
        source.shuffle(loose)
        for order in (modifiers, [*loose, *kinds], [*kinds, *loose]):
            form = find_form(mnemonic, tuple(order))
            assert form is not None, f"{opcode} as {order} has no row"
            assert form.row is row, f"{opcode} is also an opcode of '{form.row.syntax}'"
            assert [t.name for t in form.types.values()] == kinds
            assert form.modifiers == set(loose)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.syntax.partition(" ")[0])
def test_an_opcode_survives_text(row: Row) -> None:
    for opcode in some_opcodes_of(row, 40):
        operands = "" if row.mnemonic not in ("bra", "brx") else " end" if row.mnemonic == "bra" else " %r1, list"
        text = f".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {{ .reg .b32 %r<2>;\n{opcode}{operands};\n"
        text += "list: .branchtargets end;\nend: ret; }"
        instruction = next(s for s in parse(text).functions["k"].body or () if isinstance(s, Instruction))
        assert instruction.opcode == opcode
        assert print_instruction(instruction) == f"{opcode}{operands};"


@pytest.mark.parametrize(
    "opcode",
    [
        "add.f16.f16", "add", "add.rn.rz.f32", "add.ftz.f64", "min.NaN.f64", "setp.lo.f32", "setp.num.s32",
        "setp.lt.b32", "cvt.f32.f64", "cvt.rn.f64.f32", "cvt.rni.f32.f64", "fma.f32", "abs.ftz.bf16", "mul.u32",
        "ex2.approx.bf16", "ld.global", "ld.global.v3.f32", "ld.global.global.u32", "st.const2.u32", "nosuch.u32",
    ],
)  # fmt: skip
def test_what_the_manual_does_not_have_has_no_row(opcode: str) -> None:
    mnemonic, *modifiers = opcode.split(".")
    assert find_form(mnemonic, tuple(modifiers)) is None


def test_every_module_holds_rows_with_a_summary_and_a_section() -> None:
    modules = {module.__name__ for module in MODULES}
    assert {row.meaning.__module__ for row in TABLE} == modules
    for row in TABLE:
        assert row.summary, row.syntax
        assert all(part.isdigit() for part in row.section.split(".")), row.syntax


def test_no_two_rows_are_the_same() -> None:
    keys = [(row.syntax, row.type_slots, tuple(row.groups.items())) for row in TABLE]
    assert len(set(map(str, keys))) == len(keys)


def test_the_package_says_which_file_has_a_section() -> None:
    text = re.sub(r"\n {9,}", " ", isa.__doc__ or "")
    told = dict(re.findall(r"^ {4}([\d.]+) +(.*)$", text, re.MULTILINE))
    found: dict[str, set[str]] = {}
    for row in TABLE:
        file = row.meaning.__module__.removeprefix(f"{isa.__name__}.").replace(".", "/") + ".py"
        found.setdefault(".".join(row.section.split(".")[:3]), set()).add(file)
    assert {
        section: set(re.findall(r"[\w/]+\.py", files)) for section, files in told.items() if section != "10"
    } == found
