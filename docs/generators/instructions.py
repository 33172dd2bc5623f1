"""The page of PTX instructions, from the table's rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from generators.markdown import code, documentation, table
from triptych.gpu.isa import MODULES, TABLE, Effect, Row, find_form
from triptych.gpu.isa.calls import BAD_POINTER, HOST_FUNCTIONS
from triptych.gpu.isa.targets import describe

_HEAD = """\
# PTX instructions

The forms that the GPU machine runs: {count} rows, {mnemonics} mnemonics. A form that is not here is an
`UnsupportedInstruction` that names the opcode and the line; `triptych instructions MNEMONIC` prints the same rows.

A syntax line reads like the manual's. In the opcode, braces mean optional; a name of the column *types* stands for one
of its types, a name of the column *modifiers* for one of its alternatives; any other name stands for itself. In the
operands, `d:pred` gives an operand its own type, `[a]` is an address, `d*` may be a vector `{{a, b}}` of elements, `d#`
may be the parts `{{a, b}}` of one value, `d|p` is a pair of which the second may be missing, and `c?` may be missing.
*target* is what a module's `.target` must be, for forms with a modifier, type or operand where one is named: another is
an error, as are modifiers that do not go together (`tests/data/forms` has what `ptxas` says of both). *FLOPs* are those
of one lane. Sections are those of NVIDIA's PTX ISA manual.

*Witnesses* say what a row's results are compared with in the tests: the *oracle*, a second executor of the same
meaning; for arithmetic *exact* results, or the *manual's error* of approximate ones, worked out without the table; and
what a device gave: *H200: same bits* (NaN, signed zeros and subnormals too, over {recorded} opcodes that were run on an
{device}), or the largest difference from it, relative, or absolute where the manual's error is.

"""
_FUNCTIONS = """\
## Functions that the host provides

What a module may call without defining it. Any other function that it does not define is an `UnsupportedFeature` that
names the function and the line.

"""
_HEADINGS = ("syntax", "types", "modifiers", "target", "pipe", "FLOPs", "section", "witnesses", "meaning")
AGREEMENT = Path(__file__).resolve().parents[2] / "tests" / "data" / "hardware" / "rows-h200-agreement.json"


def page() -> str:
    """The page's Markdown."""
    found = json.loads(AGREEMENT.read_text(encoding="utf-8"))
    head = _HEAD.format(
        count=len(TABLE), mnemonics=len({row.mnemonic for row in TABLE}), recorded=len(found["opcodes"]),
        device=found["device"].partition(",")[0],
    )  # fmt: skip
    device = _by_row(found["opcodes"])
    parts: list[str] = []
    for module in MODULES:
        rows = [row for row in TABLE if row.meaning.__module__ == module.__name__]
        title = documentation(module).partition("\n")[0]
        parts.append(f"## {title.rstrip('.')}\n\n{table(_HEADINGS, (_cells(row, device) for row in rows))}")
    functions = ((code(f.prototype), f.summary) for f in HOST_FUNCTIONS.values() if f.name != BAD_POINTER)
    parts.append(_FUNCTIONS + table(("prototype", "meaning"), functions))
    return head + "".join(parts).rstrip() + "\n"


def _by_row(opcodes: Mapping[str, str]) -> Mapping[str, set[str]]:
    """What was found of the opcodes of each row, by syntax line and types."""
    found: dict[str, set[str]] = {}
    for opcode, value in opcodes.items():
        mnemonic, *modifiers = opcode.split(".")
        form = find_form(mnemonic, tuple(modifiers))
        if form is not None:
            found.setdefault(f"{form.row.syntax} {form.row.types}", set()).add(value)
    return found


def _witnesses(row: Row, device: Mapping[str, set[str]]) -> str:
    if row.effect is not Effect.NONE:
        return "oracle"
    is_approximate = not row.literals.isdisjoint(("approx", "full"))
    found = device.get(f"{row.syntax} {row.types}", set())
    largest = max(found - {"same"}, key=lambda text: float(text.split()[0]), default="")
    worked_out = "manual's error" if is_approximate else "exact"
    if not found:
        return f"oracle; {worked_out}"
    return f"oracle; {worked_out}; H200: {f'≤ {largest.split()[0]}' if largest else 'same bits'}"


def _cells(row: Row, device: Mapping[str, set[str]]) -> Sequence[str]:
    types = "; ".join(f"{name}: {_sorted(kinds)}" for name, kinds in row.type_slots if len(kinds) > 1)
    chosen = [(name, alternatives) for name, (alternatives, _) in row.groups.items() if set(alternatives) != {name}]
    modifiers = "; ".join(f"{name}: {_sorted(alternatives)}" for name, alternatives in chosen)
    flops = str(row.flops) if row.flops else ""
    witnesses = _witnesses(row, device)
    target = "; ".join(f"{code(name)}: {describe(need)}" if name else describe(need) for name, need in _by_need(row))
    return code(row.syntax), types, modifiers, target, row.pipe.value, flops, row.section, witnesses, row.summary


def _by_need(row: Row) -> Iterator[tuple[str, str]]:
    """The needs of a row's own modifiers, types and operands, those of all its forms first."""
    own = {name for alternatives, _ in row.groups.values() for name in alternatives}
    own |= {name for _, kinds in row.type_slots for name in kinds} | row.literals | {s.name for s in row.operands}
    return ((name, row.needs[name]) for name in sorted(row.needs) if not name or own.issuperset(name.split(".")))


def _sorted(names: Iterable[str]) -> str:
    """In the order of their letters, then of their numbers: `u8 u16`."""

    def key(name: str) -> tuple[str, int, str]:
        match = re.match(r"([^0-9]*)(\d*)", name)
        assert match is not None
        return match[1], int(match[2] or 0), name

    return " ".join(map(code, sorted(names, key=key)))
