"""The page of settings, from the fields of `Settings` and the docstrings below them."""

from __future__ import annotations

from generators.markdown import code, fields_of, table
from triptych.core.settings import Settings

_HEAD = """\
# Settings

`triptych.settings()` gives the settings in force. Environment variables are read there and nowhere else, each time the
settings are asked for; `with triptych.scope(workers=1): …` changes some for a block of code. A value that a variable
does not take is a `SettingError` that names the variable.

"""
_FOOT = """\
One variable of AWS's own is read as well, by the NKI front end: `NEURON_PLATFORM_TARGET_OVERRIDE` names the compile
target, by any name of its [chip](chips.md) (`trn2`, `gen3`), and goes before every setting.
"""


def page() -> str:
    """The page's Markdown."""
    rows: list[tuple[str, ...]] = []
    for field in fields_of(Settings):
        variable, _, meaning = field.words.partition(": ")
        rows.append((code(field.name), code(variable), code(field.type), code(field.default), meaning))
    return _HEAD + table(("setting", "variable", "type", "default", "meaning"), rows) + _FOOT
