"""A chip file's text -> a chip. Every complaint names the file, the key and what was expected."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from triptych.chips.chip import Chip, GpuChip, NeuronChip
from triptych.chips.facts import Fact
from triptych.chips.fields import (
    FIELDS,
    GPU_FIELDS,
    NEURON_FIELDS,
    PEAK_HIGH,
    PEAK_LOW,
    PIPES,
    Field,
    Number,
    Pipe,
    Word,
)
from triptych.core.errors import ChipError
from triptych.core.gpu_facts import WARP_SIZE
from triptych.core.output import visible
from triptych.core.source import SourceLocation

IDENTITY = ("name", "title", "family", "aliases")
PEAKS = "flops_per_s"

Table = Mapping[str, object]


def read(text: str, file: str) -> Chip:
    """The chip that `text` (TOML) describes; `file` is where it came from, for messages.

    Raises:
        ChipError: for text that is not TOML, a missing, unknown or nonsensical value, a missing source, a wrong unit,
            or values that contradict each other.
    """
    table = _parse(text, file)
    reader = _Reader(file)
    families = f"one of {', '.join(map(repr, FIELDS))}"
    family = reader.word(table, "family", families)
    if family not in FIELDS:
        raise reader.error("family", f"is {family!r}; expected {families}")
    reader.reject_unknown(table, (*IDENTITY, *(field.key for field in FIELDS[family]), PEAKS))
    name, title = reader.word(table, "name"), reader.word(table, "title")
    facts = reader.facts(table, FIELDS[family])
    facts |= reader.peaks(table, PIPES[family])
    chip = _gpu(name, title, facts) if family == "gpu" else _neuron(name, title, facts)
    _check_consistency(chip, reader)
    return chip


def aliases_of(text: str, file: str) -> tuple[str, ...]:
    """The other names by which the chip of a file is known."""
    found = _parse(text, file).get("aliases", [])
    entries = cast("list[object]", found) if isinstance(found, list) else [found]
    if not all(isinstance(entry, str) for entry in entries):
        raise _Reader(file).error("aliases", "expected a list of names")
    return tuple(str(entry) for entry in entries)


def _parse(text: str, file: str) -> Table:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:  # a number of thousands of digits is no TOMLDecodeError
        raise ChipError(f"not a TOML file: {problem}", where=SourceLocation(file, 0)) from problem


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


class _Reader:
    """Takes values out of a parsed file, and knows the file for its complaints."""

    def __init__(self, file: str) -> None:
        self._file = file

    def error(self, key: str, problem: str, hint: str | None = None) -> ChipError:
        return ChipError(f"key '{key}': {problem}", where=SourceLocation(self._file, 0), hint=hint)

    def word(self, table: Table, key: str, expected: str = "text") -> str:
        value = table.get(key)
        if value is None:
            raise self.error(key, f"is missing; expected {expected}")
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f"is {value!r}; expected {expected}")
        return self._printed(key, value)

    def _printed(self, key: str, text: str) -> str:
        """The text, which reports print."""
        if visible(text) != text:
            raise self.error(key, f"is {text!r}; expected no control characters")
        return text

    def reject_unknown(self, table: Table, known: Iterable[str], prefix: str = "") -> None:
        names = list(known)
        for key in table:
            if key not in names:
                near = difflib.get_close_matches(key, names, n=1)
                hint = f"did you mean '{prefix}{near[0]}'?" if near else f"known keys: {', '.join(names)}"
                raise self.error(prefix + key, "is not a key of a chip file", hint)

    def facts(self, table: Table, fields: Sequence[Field]) -> dict[str, Fact]:
        found: dict[str, Fact] = {}
        for field in fields:
            entry = table.get(field.key)
            if entry is None and not field.required:
                continue
            if isinstance(field, Word):
                found[field.key] = self._words(field, entry)
            else:
                found[field.key] = self._number(field.key, entry, field)
        return found

    def peaks(self, table: Table, pipes: Sequence[Pipe]) -> dict[str, Fact]:
        entries = table.get(PEAKS)
        if not isinstance(entries, dict):
            raise self.error(PEAKS, "is missing; expected a table of peaks by pipe")
        peaks = cast("dict[str, object]", entries)
        self.reject_unknown(peaks, (pipe.key for pipe in pipes), f"{PEAKS}.")
        found: dict[str, Fact] = {}
        for pipe in pipes:
            entry = peaks.get(pipe.key)
            if entry is not None or pipe.required:
                key = f"{PEAKS}.{pipe.key}"
                found[key] = self._number(key, entry, Number(key, pipe.unit, PEAK_LOW, PEAK_HIGH))
        return found

    def _words(self, field: Word, entry: object) -> Fact:
        value, _, source = self._parts(field.key, entry, field.expected, "")
        if not isinstance(value, str) or not field.pattern.fullmatch(value):
            raise self.error(field.key, f"value is {value!r}; expected {field.expected}")
        self._printed(field.key, value)
        return Fact(value, "", source)

    def _number(self, key: str, entry: object, field: Number) -> Fact:
        kind = "a whole number" if field.whole else "a number"
        expected = f"{kind} from {field.low:g} to {field.high:g} {field.unit}"
        value, unit, source = self._parts(key, entry, expected, field.unit)
        if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
            raise self.error(key, f"value is {value!r}; expected {expected}")
        if field.whole and not isinstance(value, int):
            raise self.error(key, f"value is {value!r}; expected {expected}")
        if not field.low <= value <= field.high:
            raise self.error(key, f"value is {value:g}; expected {expected}")
        return Fact(value, unit, source)

    def _parts(self, key: str, entry: object, expected: str, unit: str) -> tuple[object, str, str]:
        shape = f'{{ value = …{f", unit = {unit!r}" if unit else ""}, source = "…" }}'.replace("'", '"')
        if entry is None:
            raise self.error(key, f"is missing; expected {expected}", f"write {key} = {shape}")
        if not isinstance(entry, dict):
            raise self.error(key, f"is {entry!r}, without a source", f"write {key} = {shape}")
        table = cast("dict[str, object]", entry)
        self.reject_unknown(table, ("value", "unit", "source"), f"{key}.")
        if "value" not in table:
            raise self.error(key, f"has no value; expected {expected}", f"write {key} = {shape}")
        source = table.get("source")
        if not isinstance(source, str) or not source.strip():
            raise self.error(key, "has no source", "say who states the value, or how it is derived")
        self._printed(f"{key}.source", source)
        if table.get("unit", "") != unit:
            raise self.error(key, f"has the unit {table.get('unit')!r}; expected {unit!r}")
        return table["value"], unit, source


def _values(facts: Mapping[str, Fact], fields: Sequence[Field]) -> dict[str, Any]:
    """The values by key, None for an optional one that is not there."""
    return {field.key: facts[field.key].value if field.key in facts else None for field in fields}


def _peaks(facts: Mapping[str, Fact]) -> dict[str, float]:
    prefix = f"{PEAKS}."
    return {key[len(prefix) :]: float(fact.value) for key, fact in facts.items() if key.startswith(prefix)}


def _gpu(name: str, title: str, facts: Mapping[str, Fact]) -> GpuChip:
    values = _values(facts, GPU_FIELDS)
    major, minor = str(values.pop("compute_capability")).split(".")
    return GpuChip(
        name=name,
        title=title,
        compute_capability=(int(major), int(minor)),
        flops_per_s=_peaks(facts),
        facts=facts,
        **values,
    )


def _neuron(name: str, title: str, facts: Mapping[str, Fact]) -> NeuronChip:
    values = _values(facts, NEURON_FIELDS)
    return NeuronChip(name=name, title=title, flops_per_s=_peaks(facts), facts=facts, **values)


def _check_consistency(chip: Chip, reader: _Reader) -> None:
    """Values that are sane alone can contradict each other; a row is (smaller key, larger key, the two values)."""
    rows: list[tuple[str, str, float, float]] = []
    match chip:
        case GpuChip():
            opt_in = chip.shared_bytes_per_block_max + chip.shared_bytes_reserved_per_block
            threads_per_sm = WARP_SIZE * chip.max_warps_per_sm
            rows = [
                ("shared_bytes_per_block_max", "shared_bytes_per_sm", opt_in, chip.shared_bytes_per_sm),
                ("max_threads_per_block", "max_warps_per_sm", chip.max_threads_per_block, threads_per_sm),
                ("dram_bytes_per_s", "l2_bytes_per_s", chip.dram_bytes_per_s, chip.l2_bytes_per_s),
                ("l2_bytes", "dram_bytes", chip.l2_bytes, chip.dram_bytes),
            ]
        case NeuronChip():
            rows = [
                (
                    "sbuf_reserved_bytes_per_partition",
                    "sbuf_bytes_per_partition",
                    chip.sbuf_reserved_bytes_per_partition,
                    chip.sbuf_bytes_per_partition,
                ),
                ("psum_bank_bytes", "psum_bytes_per_partition", chip.psum_bank_bytes, chip.psum_bytes_per_partition),
                ("core_hbm_bytes_per_s", "hbm_bytes_per_s", chip.core_hbm_bytes_per_s, chip.hbm_bytes_per_s),
            ]
    factors = ("time_factor_low", "time_factor_high")
    missing = [key for key in factors if key not in chip.facts]
    if len(missing) == 1:
        raise reader.error(missing[0], "is missing; there is the other end of the error bar")
    rows.append((*factors, chip.time_factor_low or 0.0, chip.time_factor_high or 0.0))
    for smaller, larger, low, high in rows:
        if low > high:
            raise reader.error(smaller, f"comes to {low:g}, more than '{larger}' allows ({high:g})")
