"""Functions whose bodies are parsed when they are asked for."""

from __future__ import annotations

import pytest

from triptych.core.errors import PtxSyntaxError
from triptych.gpu.syntax import parse, parse_lazily
from triptych.gpu.syntax.outline import outline_of

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
VARIABLE = ".global .align 1 .u8 v = 5;"
TRICKY = (
    HEADER
    + """
// .func none { }
.global .b32 numbers[2] = {1, 2}; /* } */
.global .align 4 .u32 first = 7;
.global .align 8 .b8 second[3]; // plain
.global .align 1 .u8 third;
.extern .func outside(.param .b32 x);
.func (.param .b32 r) twice(.param .b32 x)
{ // }
    .reg .b32 %r<3>; /* { */
    { .reg .b32 %r<2>; mov.b32 %r1, 3; }
    ld.param.b32 %r1, [x]; st.param.b32 [r], %r1;
    ret;
}
.visible .entry k(.param .u64 out) .reqntid 32 { .reg .pred %p; @%p bra END; END: ret; }
.pragma "nounroll";
.alias again, twice;
.section .debug_str { info: .b8 1 }
.file 1 "a{.cu"
"""
)


def test_bodies_are_found_by_their_braces() -> None:
    outline = outline_of(TRICKY)
    assert outline is not None
    bodies = outline.bodies
    assert [TRICKY[start:end].split()[0] for start, end in bodies.items()] == ["{", "{"]
    assert [TRICKY[start:end].split()[-1] for start, end in bodies.items()] == ["}", "}"]
    first, second = bodies
    assert "%r<3>" in TRICKY[first : bodies[first]]
    assert TRICKY[second : bodies[second]] == "{ .reg .pred %p; @%p bra END; END: ret; }"
    assert outline_of("{") is None
    assert outline_of(".entry k() { } }") is None
    (run,) = outline.runs
    assert TRICKY[slice(*run)].split() == [".global", ".align", "8", ".b8", "second[3];"]


def test_what_is_parsed_later_is_the_same() -> None:
    module, lazy = parse(TRICKY), parse_lazily(TRICKY)
    assert lazy.functions["again"].name == "again"
    assert lazy == module
    assert (len(lazy.functions), "twice" in lazy.functions, "once" in lazy.functions) == (4, True, False)
    assert lazy.functions["k"] is lazy.functions["k"]
    assert lazy.functions.get("once") is None


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        (f"{HEADER}.entry a() {{ ret; }}\n.entry b()\n{{ mov.b32 %r1, 1; }}", "undeclared register '%r1'", 6),
        (f"{HEADER}.entry a() {{ ret; }}\n.entry b()\n{{ .reg .b32 %r1;\nmov.b32 %r1, c; }}", "unknown name 'c'", 7),
        (f"{HEADER}.entry a() {{ ret; }}\n.entry b()\n{{ {{ ret; }}", "no '}': the text is cut short", 6),
        (f"{HEADER}.entry a() {{ ret; }}\n.entry b()\n{{ ret }}", "expected an operand, found '}'", 6),
        (f"{HEADER}.entry a() {{ ret; }}\n.entry a()\n{{ ret; }}", "'a' is declared twice", 5),
        (f"{HEADER};\n{VARIABLE}\n{VARIABLE}\n.entry a() {{ ret; }}", "'v' is declared twice", 6),
        (f"{HEADER};\n{VARIABLE.replace('5', '256')}\n.entry a() {{ ret; }}", "value does not fit in a .u8", 5),
    ],
)
def test_errors_are_the_same_when_they_come_later(text: str, message: str, line: int) -> None:
    for read in (parse, parse_lazily):
        with pytest.raises(PtxSyntaxError, match=message) as caught:
            list(read(text).functions.values())
        assert caught.value.where is not None
        assert caught.value.where.line == line
    if message.startswith(("undeclared", "unknown", "expected")):
        assert parse_lazily(text).functions["a"].body
