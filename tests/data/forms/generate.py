"""Writes `forms.json`: what `ptxas` says of forms of instructions, for which targets; `syntax.txt` says of which.

    python tests/data/forms/generate.py

Asked is the `ptxas` that came with Triton (`ptxas-blackwell`, the newest one). Of combinations of many modifiers, and
of what it refuses, a part is recorded: the same one each time.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import combinations, product
from pathlib import Path

HERE = Path(__file__).parent
VERSION = "9.4"
TARGETS = (
    *("sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_90a"),
    *(f"sm_{number}{suffix}" for number in (100, 103, 107, 110, 120, 121) for suffix in ("", "a", "f")),
)
WIDEST = ("sm_75", "sm_90a", "sm_100a", "sm_107a", "sm_120a")
"""What none of these accepts, no target does."""
REGISTERS = (
    ".reg .pred %p<40>; .reg .b8 %c<40>; .reg .b16 %h<40>; .reg .b32 %r<40>; .reg .b64 %d<40>; .reg .b128 %q<40>;"
)
_LETTERS = {1: "p", 8: "c", 16: "h", 32: "r", 64: "d", 128: "q"}
_WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
_PLAIN = re.compile(r"(?:b?f|[usb])(\d+)(?:x(\d+))?")
_SMALL = re.compile(r"(?:e4m3|e5m2|e2m3|e3m2|ue8m0|s2f6|(e2m1))x(\d)")
_ERROR = re.compile(r"line (\d+); (error|fatal)\s*: (.*)")


def width(name: str) -> int | None:
    """The bits of a type; None for what is none."""
    if found := _PLAIN.fullmatch(name):
        bits = int(found[1]) * int(found[2] or 1)
        return 32 if bits < 8 else bits
    if found := _SMALL.fullmatch(name):
        return (4 if found[1] else 8) * int(found[2])
    return {"pred": 1, "tf32": 32}.get(name)


# --- Instances ------------------------------------------------------------------------------------------------------


class _Operands:
    """The operands of an instance, from a pattern: `d a:1 [b] {c/2} =5`."""

    def __init__(self, modifiers: Sequence[str]) -> None:
        self.types = [name for name in modifiers if width(name) is not None]
        self.vector = next((int(name[1:]) for name in modifiers if re.fullmatch(r"v\d", name)), 1)
        self.count = 0

    def write(self, pattern: str) -> str:
        return ", ".join(map(self._one, pattern.replace("-", "").split()))

    def _one(self, token: str) -> str:
        if token[0] == "=":
            return token[1:]
        if token == "_":
            return token
        if token == "@L":
            return "LBL"
        if token[0] == "!":
            return "!" + self._one(token[1:])
        if token[0] == "[":
            return f"[{self._register('u64')}]"
        if token[0] == "{":
            return self._parts(*token[1:-1].split("/"))
        if "|" in token:
            return "|".join(map(self._one, token.split("|")))
        name, _, kind = token.partition(":")
        kind, dot, selector = kind.partition(".")
        if name.endswith("*") and self.vector > 1:
            return "{" + ", ".join(self._register(kind) for _ in range(self.vector)) + "}"
        return self._register(kind) + dot + selector

    def _parts(self, name: str, cut: str) -> str:
        """`{a/4}`: a value in four parts; `{a/=4}`: four of its type; `{a/2_}`: the first is thrown away."""
        kind, count = name.partition(":")[2], int(cut.strip("=_"))
        bits = self._width(kind) if "=" in cut else self._width(kind) // count
        parts = [self._register(f"b{bits}") for _ in range(count)]
        return "{" + ", ".join(["_", *parts[1:]] if cut.endswith("_") else parts) + "}"

    def _width(self, kind: str) -> int:
        if kind == "wide":
            kind = _WIDER[self.types[0]]
        elif not kind or kind.isdigit():
            kind = self.types[int(kind or 0)]
        found = width(kind)
        assert found is not None
        return found

    def _register(self, kind: str) -> str:
        self.count += 1
        return f"%{_LETTERS[self._width(kind)]}{self.count}"


def _expand(slots: Sequence[tuple[bool, Sequence[str]]], most: int | None) -> Iterator[tuple[str, ...]]:
    """The modifiers of each form: one of each slot, and of those that may be missing `most` at most."""
    optional = [place for place, (may_miss, _) in enumerate(slots) if may_miss]
    for count in range(len(optional) + 1 if most is None else min(most, len(optional)) + 1):
        for chosen in combinations(optional, count):
            kept = [names for place, (may_miss, names) in enumerate(slots) if not may_miss or place in chosen]
            yield from product(*kept)


def instances() -> list[str]:
    """All that `syntax.txt` asks for, as statements of PTX."""
    short: dict[str, str] = {}
    found: dict[str, None] = {}
    for line in (HERE / "syntax.txt").read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("$"):
            name, _, value = line.partition(" = ")
            short[name] = value
            continue
        opcode, _, patterns = line.partition(" => ")
        first, *rest = opcode.split(" | ")
        mnemonic, _, most = first.partition(" ")
        slots = [(slot[0] == "?", short.get(slot.lstrip("?"), slot.lstrip("?")).split()) for slot in rest]
        for modifiers in _expand(slots, int(most) if most else None):
            for pattern in patterns.split(" / "):
                try:
                    operands = _Operands(modifiers).write(pattern)
                except (IndexError, KeyError):  # a pattern for other types: there is no such instance
                    continue
                found[f"{'.'.join((mnemonic, *modifiers))} {operands}".strip() + ";"] = None
    return list(found)


# --- ptxas ----------------------------------------------------------------------------------------------------------


def _ptxas() -> Path:
    triton = find_spec("triton")
    assert triton is not None
    assert triton.submodule_search_locations
    return Path(triton.submodule_search_locations[0]) / "backends/nvidia/bin/ptxas-blackwell"


def _ask(statements: Sequence[str], target: str) -> list[str | None]:
    """What is wrong with each statement, None where nothing is. A last one that is always wrong keeps it from code."""
    left = list(statements)
    syntax: dict[int, str] = {}
    head = f".version {VERSION}\n.target {target}\n.address_size 64\n.entry k() {{ {REGISTERS}\nLBL:\n"
    first = head.count("\n") + 1
    while True:
        errors: dict[int, str] = {}
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(head + "\n".join(left) + "\nno.instruction;\nret; }\n")
            file.flush()
            command = [str(_ptxas()), "-arch", target, "-o", "/dev/null", file.name]
            told = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        for number, kind, what in _ERROR.findall(told.stderr):
            place = int(number) - first
            errors.setdefault(place, what)
            if kind == "fatal" or "syntax error" in what:  # it reads no further
                syntax[place], left[place] = what, ""
                break
        else:
            assert len(left) in errors, told.stderr
            return [syntax.get(place, errors.get(place)) for place in range(len(left))]


def _ask_in_parts(statements: Sequence[str], target: str) -> Mapping[str, str | None]:
    answers: dict[str, str | None] = {}
    for start in range(0, len(statements), 4000):
        part = statements[start : start + 4000]
        answers.update(zip(part, _ask(part, target), strict=True))
    return answers


# --- The record -----------------------------------------------------------------------------------------------------

_MANY = ("ld", "st", "atom", "red")


def _is_kept(statement: str, accepted: bool) -> bool:
    opcode = statement.partition(" ")[0]
    mnemonic, *modifiers = opcode.rstrip(";").split(".")
    if accepted:
        return mnemonic not in _MANY or len(modifiers) <= 2 or zlib.crc32(statement.encode()) % 8 == 0
    return zlib.crc32(statement.encode()) % (60 if mnemonic in _MANY else 100) == 0


def _by_operands(statements: Sequence[str]) -> list[str]:
    """`operands; opcode opcode …`: statements with the same operands in one line."""
    groups: dict[str, list[str]] = {}
    for statement in statements:
        opcode, _, operands = statement.rstrip(";").partition(" ")
        groups.setdefault(operands, []).append(opcode)
    return [f"{operands}; {' '.join(opcodes)}" for operands, opcodes in groups.items()]


def main() -> None:
    """Asks and writes."""
    statements = instances()
    answers = {target: _ask_in_parts(statements, target) for target in WIDEST}
    accepted = [s for s in statements if any(answers[target][s] is None for target in WIDEST)]
    known = frozenset(accepted)
    refused = [s for s in statements if s not in known and _is_kept(s, accepted=False)]
    kept = [s for s in accepted if _is_kept(s, accepted=True)]
    answers |= {target: _ask_in_parts(kept, target) for target in TARGETS}
    by_targets: dict[str, list[str]] = {}
    for statement in kept:
        having = " ".join(target for target in TARGETS if answers[target][statement] is None)
        by_targets.setdefault(having, []).append(statement)
    version = subprocess.run([str(_ptxas()), "--version"], capture_output=True, text=True, check=True)
    record = {
        "ptxas": version.stdout.split("release ")[1].split("\n")[0],
        "ptx": VERSION,
        "date": datetime.now(UTC).date().isoformat(),
        "asked": len(statements),
        "accepted_in_all": len(accepted),
        "targets": TARGETS,
        "accepted": {having: _by_operands(some) for having, some in by_targets.items()},
        "refused": _by_operands(refused),
    }
    (HERE / "forms.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
