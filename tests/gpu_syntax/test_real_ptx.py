"""Text that compilers wrote: it parses, survives printing, and no damage to it does worse than a syntax error."""

from __future__ import annotations

import random
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triptych.core.errors import PtxSyntaxError
from triptych.gpu.syntax import parse, parse_lazily, print_module
from triptych.gpu.syntax.ast import Instruction, Module

FILES = sorted((Path(__file__).parents[1] / "data" / "ptx").glob("*.ptx"))
TEXTS = {path.stem: path.read_text() for path in FILES}
SMALL = sorted(name for name, text in TEXTS.items() if len(text) < 6000)


def strip_places(value: object) -> object:
    """The tree as plain values without lines and origins, which printing does not keep."""
    if is_dataclass(value):
        kept = [f.name for f in fields(value) if f.name not in ("line", "ordinal", "origin")]
        return type(value).__name__, {name: strip_places(getattr(value, name)) for name in kept}
    if isinstance(value, tuple):
        return [strip_places(item) for item in cast("tuple[object, ...]", value)]
    if isinstance(value, dict):
        return {name: strip_places(item) for name, item in cast("dict[object, object]", value).items()}
    return value


def count_instructions(text: str) -> int:
    """Instructions by a rule of thumb that does not use the parser: statements of bodies that are no directives."""
    plain = re.sub(r"//[^\n]*", "", text)
    plain = re.sub(r'\.section[^{]*\{[^}]*\}|\.file[^\n]*|\.loc\s[^\n]*|"[^"]*"', "", plain)
    statements = (re.sub(r"^(\s|[{}]|[\w$]+\s*:(?!:))*", "", part) for part in plain.split(";"))
    return sum(re.match(r"@?!?%?[a-z]", part) is not None for part in statements)


def parse_or_refuse(text: str) -> Module | None:
    try:
        return parse(text)
    except PtxSyntaxError as refused:
        error = refused
    assert error.where is not None
    assert 1 <= error.where.line <= text.count("\n") + 1
    return None


PIECES = st.one_of(
    st.sampled_from(["", "{", "}", "(", ")", "[", "]", ";", ",", ":", ".", "%", "@", "!", "|", "0", "<", ">"]),
    st.sampled_from([".reg .b32 ", ".loc 1 1 1", " = {", "0f", "/*", "//", '"', "-", "+", "9" * 30, ".align "]),
    st.text(max_size=3),
)


@pytest.mark.parametrize("name", TEXTS)
def test_every_instruction_is_found(name: str) -> None:
    module = parse(TEXTS[name], name=f"{name}.ptx")
    found = sum(
        isinstance(statement, Instruction)
        for function in module.functions.values()
        for statement in function.body or ()
    )
    assert found == count_instructions(TEXTS[name])


@pytest.mark.parametrize("name", TEXTS)
def test_functions_that_are_parsed_later_are_the_same(name: str) -> None:
    module, lazy = parse(TEXTS[name]), parse_lazily(TEXTS[name])
    assert list(lazy.functions) == list(module.functions)
    for function in reversed(list(module.functions)):
        assert lazy.functions[function] == module.functions[function]
    assert lazy == module


@pytest.mark.parametrize("name", TEXTS)
def test_printing_and_parsing_gives_the_same_module(name: str) -> None:
    module = parse(TEXTS[name])
    assert strip_places(parse(print_module(module))) == strip_places(module)


@pytest.mark.parametrize("name", SMALL)
def test_a_text_cut_anywhere_in_a_body_is_refused(name: str) -> None:
    text = TEXTS[name]
    generator = random.Random(name)
    first, last = text.index("{\n"), text.rindex("}", 0, text.index("\n}\n", text.rindex("ret;")) + 2)
    depth = [0]
    for character in text:
        depth.append(depth[-1] + (character == "{") - (character == "}"))
    for place in generator.sample(range(first, last), 60):
        if depth[place]:
            assert parse_or_refuse(text[:place]) is None, f"cut at {place}"


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(SMALL), data=st.data())
def test_damaged_text_gives_a_module_or_a_syntax_error(name: str, data: st.DataObject) -> None:
    text = TEXTS[name]
    for _ in range(data.draw(st.integers(1, 4))):
        start, copied = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, len(text)))
        piece = data.draw(PIECES) if data.draw(st.booleans()) else text[copied : copied + 20]
        text = text[:start] + piece + text[start + data.draw(st.integers(0, 8)) :]
    module = parse_or_refuse(text)
    if module is not None:
        assert strip_places(parse(print_module(module))) == strip_places(module)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_any_text_gives_a_module_or_a_syntax_error(text: str) -> None:
    parse_or_refuse(text)
    parse_or_refuse(f".version 8.0\n.target sm_80\n{text}")
    parse_or_refuse(f".version 8.0\n.target sm_80\n.entry k() {{ .reg .b32 %r<4>; {text} }}")
