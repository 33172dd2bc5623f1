"""Errors name the line, what was expected and what was found."""

from __future__ import annotations

import pytest

from triptych.core.errors import PtxSyntaxError
from triptych.gpu.syntax import parse

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
BODY = ".entry k()\n{{\n.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>; .shared .b32 tile[4];\n{}\n}}\n"


def fail(text: str) -> str:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(text, name="broken.ptx")
    assert caught.value.where is not None
    assert caught.value.where.file == "broken.ptx"
    return str(caught.value)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("mov.b32 %r9, 1;", "undeclared register '%r9'"),
        ("mov.b32 %r1, %tid;", "undeclared register '%tid'"),
        ("mov.b32 %r1, %r2.b0;", "'mov.b32': the selector '.b0' of register '%r2' is not supported"),
        ("mov.b64 %rd1, nothing;", "unknown name 'nothing'"),
        ("X: X: ret;", "'X' is declared twice"),
        (".reg .b32 %r1;", "'%r1' is declared twice"),
        ("@%p1 bra NOWHERE;", "'NOWHERE' is not a label"),
        ("@%p1 bra tile;", "'tile' is not a label"),
        ("bra %r1;", "'bra' takes one label"),
        ("L: .branchtargets NOWHERE;", "expected a label, found 'NOWHERE'"),
        ("mov.b32 %r1 1;", "expected ',' or ';' after an operand of 'mov.b32', found '1'"),
        ("mov.b32 %r1, ;", "expected an operand, found ';'"),
        ("mov.b32 %r1, 0f3F80;", "malformed number '0f3F80'"),
        ("mov.b32 %r1, 0x10000000000000000;", "malformed number"),
        ("mov.b32 %r1, 12ab;", "malformed number '12ab'"),
        ("mov.b32 %r1, 1/0;", "divided by zero"),
        ("mov.b32 %r1, 1<<64;", "shifted by 64"),
        ("ld.b32 %r1, [%rd1;", "expected ']' after an address, found ';'"),
        ("ld.b32 %r1, [%rd1+%r2];", "expected an offset, found '%r2'"),
        ("mov.b32 {%r1, {%r2}}, 1;", "expected an element of"),
        ("@%r mov.b32 %r1, 1;", "undeclared register '%r'"),
        ("@tile mov.b32 %r1, 1;", "expected a predicate after '@', found 'tile'"),
        ("@%p1 ;", "expected an instruction after its guard, found ';'"),
        (".reg .v4 .f32 %v;", "vector registers are not supported"),
        (".reg .b32 %q<99999999>;", "99999999 registers in one declaration"),
        (".shared .align 3 .b8 x;", "an alignment of 3"),
        (".shared .b8 x[-1];", "an array of -1 elements"),
        (".bogus;", "expected an instruction, a label or a directive of a body, found '.bogus'"),
        ("%r1 = 5;", "expected an instruction, found '%r1'"),
        ("L: .calltargets f;", "unknown name 'f': no variable, function, label or register has it"),
        ("L: .calltargets 5;", "expected a function of '.calltargets', found '5'"),
        ("L: .callprototype (.param .b32 _) 5;", "expected '_' in place of a function's name, found '5'"),
    ],
)
def test_errors_in_a_body_name_the_line(statement: str, message: str) -> None:
    error = fail(HEADER + BODY.format(statement))
    assert message in error
    assert "at broken.ptx:7" in error


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", "expected '.version' at the start of the module, found the end of the text", 1),
        (".version 8\n.target sm_80", "expected a version such as 8.4, found '8'", 1),
        (".version 8.0\n.address_size 64", "expected '.target' after '.version', found '.address_size'", 2),
        (".version 8.0\n.target sm_80\n.address_size 16", "an address size of 16", 3),
        (".version 8.0\n.target sm_80\n.address_size 32", "addresses of 32 bits are not supported", 3),
        (HEADER + ".global .b32 x[1] = {{1}};", "initial values are nested deeper", 4),
        (HEADER + ".global .b32 x[2] = {1, 2, 3};", "3 initial values for 2 elements", 4),
        (HEADER + ".global .b8 x = 256;", "does not fit in a .b8", 4),
        (HEADER + ".global .b8 x = other;", "the address of 'other' does not fit in a .b8", 4),
        (HEADER + ".global .b64 x = other;", "refers to the unknown 'other'", 4),
        (HEADER + ".global .f16 x = 1;", "a .f16 variable takes no initial value", 4),
        (HEADER + ".global .b8 x[2] = {0xff(x), 1};", "only whole addresses are supported", 4),
        (HEADER + ".global .b32 x;\n.global .b32 x;", "'x' is declared twice in the module", 5),
        (HEADER + ".func f() { ret; }\n.func f() { ret; }", "'f' is declared twice in the module", 5),
        (HEADER + ".alias g, f;", "names 'f', which is not a function", 4),
        (HEADER + ".global .b32;", "expected a variable's name, found ';'", 4),
        (HEADER + ".global x;", "expected a type such as '.b32', found 'x'", 4),
        (HEADER + "}", "expected a function, a variable or a directive of a module, found '}'", 4),
        (HEADER + ".visible ret;", "expected a variable or a function after '.visible'", 4),
        (HEADER + ".section .debug_str {", "the section has no '}'", 4),
        (HEADER + ".entry k() {\n ret;\n", "the body of the function has no '}'", 4),
        (HEADER + ".global .b8 x[99999999999999999];", "more than", 4),
        (HEADER + ".global .b8 x[1000000000] = {1};", "has an initial value and more than", 4),
    ],
)
def test_errors_in_a_module_name_the_line(text: str, message: str, line: int) -> None:
    error = fail(text)
    assert message in error
    assert f"at broken.ptx:{line}" in error


def test_deep_nesting_is_an_error() -> None:
    assert "nested more than" in fail(HEADER + BODY.format("mov.b32 %r1, " + "(" * 10000 + "1;"))
    assert "nested more than" in fail(HEADER + BODY.format("{" * 200 + "}" * 200))
    assert "deeper" in fail(HEADER + ".global .b8 x[1] = " + "{" * 5000 + "}")
