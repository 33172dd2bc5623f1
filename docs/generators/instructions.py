"""The page of PTX instructions, from the table's rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from generators.markdown import code, documentation, table
from triptych.gpu.isa import MODULES, TABLE, Row
from triptych.gpu.isa.calls import BAD_POINTER, HOST_FUNCTIONS

_HEAD = """\
# PTX instructions

The forms that the GPU machine runs: {count} rows, {mnemonics} mnemonics. A form that is not here is an
`UnsupportedInstruction` that names the opcode and the line; `triptych instructions MNEMONIC` prints the same rows.

A syntax line reads like the manual's. In the opcode, braces mean optional; a name of the column *types* stands for one
of its types, a name of the column *modifiers* for one of its alternatives; any other name stands for itself. In the
operands, `d:pred` gives an operand its own type, `[a]` is an address, `d*` may be a vector `{{a, b}}` of elements, `d#`
may be the parts `{{a, b}}` of one value, `d|p` is a pair of which the second may be missing, and `c?` may be missing.
*FLOPs* are those of one lane. Sections are those of NVIDIA's PTX ISA manual.

"""
_FUNCTIONS = """\
## Functions that the host provides

What a module may call without defining it. Any other function that it does not define is an `UnsupportedFeature` that
names the function and the line.

"""
_HEADINGS = ("syntax", "types", "modifiers", "pipe", "FLOPs", "section", "meaning")


def page() -> str:
    """The page's Markdown."""
    head = _HEAD.format(count=len(TABLE), mnemonics=len({row.mnemonic for row in TABLE}))
    parts: list[str] = []
    for module in MODULES:
        rows = [row for row in TABLE if row.meaning.__module__ == module.__name__]
        title = documentation(module).partition("\n")[0]
        parts.append(f"## {title.rstrip('.')}\n\n{table(_HEADINGS, map(_cells, rows))}")
    functions = ((code(f.prototype), f.summary) for f in HOST_FUNCTIONS.values() if f.name != BAD_POINTER)
    parts.append(_FUNCTIONS + table(("prototype", "meaning"), functions))
    return head + "".join(parts).rstrip() + "\n"


def _cells(row: Row) -> Sequence[str]:
    types = "; ".join(f"{name}: {_sorted(kinds)}" for name, kinds in row.type_slots if len(kinds) > 1)
    chosen = [(name, alternatives) for name, (alternatives, _) in row.groups.items() if set(alternatives) != {name}]
    modifiers = "; ".join(f"{name}: {_sorted(alternatives)}" for name, alternatives in chosen)
    flops = str(row.flops) if row.flops else ""
    return code(row.syntax), types, modifiers, row.pipe.value, flops, row.section, row.summary


def _sorted(names: Iterable[str]) -> str:
    """In the order of their letters, then of their numbers: `u8 u16`."""

    def key(name: str) -> tuple[str, int, str]:
        match = re.match(r"([^0-9]*)(\d*)", name)
        assert match is not None
        return match[1], int(match[2] or 0), name

    return " ".join(map(code, sorted(names, key=key)))
