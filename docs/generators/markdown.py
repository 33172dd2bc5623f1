"""Markdown as the pages need it: tables, code, docstrings."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from textwrap import dedent


def code(text: str) -> str:
    """Inline code; empty for nothing."""
    return f"`{text}`" if text else ""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, with a blank line behind it."""
    lines = [_row(headings), _row(["---"] * len(headings)), *map(_row, rows)]
    return "\n".join(lines) + "\n\n"


def _row(cells: Sequence[str]) -> str:
    inner = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(inner)} |"


def documentation(thing: object) -> str:
    """The docstring without its indentation, empty where there is none of its own."""
    return inspect.getdoc(thing) or ""


def first_paragraph(thing: object) -> str:
    """The docstring up to its first blank line, as one line."""
    return " ".join(documentation(thing).partition("\n\n")[0].split())


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a dataclass, as its source has it; `words` is its docstring. Empty: it has none."""

    name: str
    type: str
    default: str
    words: str


def fields_of(kind: type) -> Iterator[Field]:
    """The fields that the class itself declares, in the order of the source."""
    for statement, words in _statements(kind):
        match statement:
            case ast.AnnAssign(ast.Name(name), annotation, default):
                yield Field(name, ast.unparse(annotation), _written_default(default), words)
            case _:
                continue


def members_of(kind: type[Enum]) -> Iterator[Field]:
    """The members of an enumeration, in the order of the source."""
    for statement, words in _statements(kind):
        match statement:
            case ast.Assign([ast.Name(name)], value):
                yield Field(name, "", ast.unparse(value), words)
            case _:
                continue


def _statements(kind: type) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of a class's body, each with the text that stands below it."""
    body = ast.parse(dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    for statement, following in zip(body.body, [*body.body[1:], ast.Pass()], strict=True):
        yield statement, _string(following)


def _written_default(value: ast.expr | None) -> str:
    """How a default is written; empty for none."""
    match value:
        case None:
            return ""
        case ast.Call(ast.Name("field"), [], [ast.keyword("default_factory", factory)]):
            return f"{ast.unparse(factory)}()"
        case ast.Call(ast.Name("field"), [], [ast.keyword("default", default), *_]):
            return ast.unparse(default)
        case _:
            return ast.unparse(value)


def _string(statement: ast.stmt) -> str:
    match statement:
        case ast.Expr(ast.Constant(str(words))):
            return " ".join(words.split())
        case _:
            return ""


_PLAIN = (bool, int, float, str, type(None))


def signature(function: object, *, types: bool) -> str:
    """The parameters, with or without their types; defaults that are no plain values are shown as `…`."""
    assert callable(function)
    given = inspect.signature(function)
    parts: list[str] = []
    starred = False
    for name, one in given.parameters.items():
        if name in ("self", "cls"):
            continue
        if one.kind is one.VAR_POSITIONAL:
            name, starred = f"*{name}", True
        elif one.kind is one.VAR_KEYWORD:
            name = f"**{name}"
        elif one.kind is one.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        kind = f": {one.annotation}" if types and one.annotation is not one.empty else ""
        parts.append(f"{name}{kind}{_default(one, spaced=bool(kind))}")
    result = f" -> {given.return_annotation}" if types and given.return_annotation is not given.empty else ""
    return f"({', '.join(parts)}){result}"


def _default(parameter: inspect.Parameter, *, spaced: bool) -> str:
    if parameter.default is parameter.empty:
        return ""
    value = parameter.default
    shown = repr(value) if isinstance(value, _PLAIN) or value == () else "…"
    return f" = {shown}" if spaced else f"={shown}"
