"""The page of settings, from the fields of `Settings` and the docstrings below them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from textwrap import dedent

from generators.markdown import code, table
from triptych.core.settings import Settings

_HEAD = """\
# Settings

`triptych.settings()` gives the settings in force. Environment variables are read there and nowhere else, each time the
settings are asked for; `with triptych.scope(workers=1): …` changes some for a block of code. A value that a variable
does not take is a `SettingError` that names the variable.

"""
_FOOT = """\
One variable of AWS's own is read as well, by the NKI front end: `NEURON_PLATFORM_TARGET_OVERRIDE` names the compile
target (`trn1`, `inf2`, `gen2`, `trn2`, `gen3`, `trn3` or `gen4`) and goes before every setting.
"""


def fields() -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and docstring of each field."""
    body = ast.parse(dedent(inspect.getsource(Settings))).body[0]
    assert isinstance(body, ast.ClassDef)
    for field, text in zip(body.body, body.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(ast.Name(name), kind, default), ast.Expr(ast.Constant(str(words))) if default:
                yield name, ast.unparse(kind), ast.unparse(default), words
            case _:
                continue


def page() -> str:
    """The page's Markdown."""
    rows: list[tuple[str, ...]] = []
    for name, kind, default, words in fields():
        variable, _, meaning = words.partition(": ")
        rows.append((code(name), code(variable), code(kind), code(default), meaning))
    return _HEAD + table(("setting", "variable", "type", "default", "meaning"), rows) + _FOOT
