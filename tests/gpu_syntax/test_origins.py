"""Where instructions come from."""

from __future__ import annotations

from triptych.core.source import BUILT_IN_HEADER, SourceLocation
from triptych.gpu.syntax import parse
from triptych.gpu.syntax.ast import Instruction, Origin

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
FILES = '\n.file 1 "user.cu"\n.file 2 "library.h"\n'
USER, LIBRARY = "user.cu", "library.h"


def origins(body: str) -> list[Origin | None]:
    module = parse(f"{HEADER}.entry k() {{\n.local .b8 x;\n{body}\nret;\n}}{FILES}")
    return [statement.origin for statement in module.functions["k"].body or () if isinstance(statement, Instruction)]


def at(file: str, line: int, *frames: tuple[str, int]) -> Origin:
    return Origin(SourceLocation(file, line), tuple(SourceLocation(*frame) for frame in frames))


def test_a_place_holds_until_the_next() -> None:
    body = "membar.cta; .loc 1 5 3\nmembar.cta; membar.cta;\n.loc 2 7 1\n"
    assert origins(body) == [None, at(USER, 5), at(USER, 5), at(LIBRARY, 7)]


def test_inlined_calls_make_a_chain() -> None:
    body = """.loc 2 20 5, function_name $L__info_string0, inlined_at 1 7 5
    membar.cta;
    .loc 2 30 9, function_name $L__info_string1, inlined_at 2 20 5
    membar.cta;
    .loc 2 31 9, function_name $L__info_string1+4, inlined_at 2 20 5
    membar.cta;
    .loc 1 8 1
    """
    assert origins(body) == [
        at(LIBRARY, 20, (USER, 7)),
        at(LIBRARY, 30, (LIBRARY, 20), (USER, 7)),
        at(LIBRARY, 31, (LIBRARY, 20), (USER, 7)),
        at(USER, 8),
    ]


def test_the_same_call_inlined_elsewhere_has_its_own_chain() -> None:
    body = """.loc 2 20 5, function_name f, inlined_at 1 7 5
    .loc 2 30 9, function_name g, inlined_at 2 20 5
    membar.cta;
    .loc 2 20 5, function_name f, inlined_at 1 8 5
    .loc 2 30 9, function_name g, inlined_at 2 20 5
    """
    assert origins(body) == [at(LIBRARY, 30, (LIBRARY, 20), (USER, 7)), at(LIBRARY, 30, (LIBRARY, 20), (USER, 8))]


def test_the_header_that_nvrtc_has_built_in_is_no_place() -> None:
    """A texture's instruction stands in it; no such file is there to open."""
    body = """.loc 1 7 5
    .loc 2 20 5, function_name helper, inlined_at 1 7 5
    .loc 3 5162 1, function_name tex1D, inlined_at 2 20 5
    .loc 3 5156 1, function_name traits, inlined_at 3 5162 1
    membar.cta;
    .loc 3 9 1
    membar.cta;
    """
    built_in = f'.file 3 "/a/folder/{BUILT_IN_HEADER}"\n'
    module = parse(f"{HEADER}.entry k() {{\n{body}\nret;\n}}{FILES}{built_in}")
    found = [one.origin for one in module.functions["k"].body or () if isinstance(one, Instruction)]
    assert found[:2] == [at(LIBRARY, 20, (USER, 7)), at(BUILT_IN_HEADER, 9)]


def test_false_lines_of_inline_assembly_are_dropped() -> None:
    body = """.loc 1 5 3
    membar.cta;
    // begin inline asm
    .loc 1 9 1
    membar.cta;
    .loc 1 10 1
    membar.cta;
    // end inline asm
    membar.cta;
    // begin inline asm
    membar.cta;
    .loc 1 11 1
    membar.cta;
    .loc 1 12 1
    // end inline asm
    .loc 1 13 1
    """
    assert origins(body) == [at(USER, line) for line in (5, 9, 9, 9, 9, 11, 13)]


def test_a_recursive_inlining_does_not_grow_without_end() -> None:
    body = ".loc 1 9 5, function_name f, inlined_at 1 9 5\n" * 500
    (origin,) = origins(body)
    assert origin is not None
    assert len(origin.frames) == 32


def test_a_function_starts_without_a_place() -> None:
    text = f"{HEADER}.func f() {{ .loc 1 3 1\n ret; }}\n.func g() {{ ret; }}{FILES}"
    found: list[Origin | None] = []
    for function in parse(text).functions.values():
        found += [statement.origin for statement in function.body or () if isinstance(statement, Instruction)]
    assert found == [at(USER, 3), None]


def test_a_file_that_is_not_declared_has_its_number() -> None:
    assert origins(".loc 7 1 1\n") == [at("<file 7>", 1)]
