"""The arithmetic rows against a recording of an H200: its very bits, or results within the error of the manual.

Exact rows must give the same NaN, signed zeros and subnormals. The record is made by `benchmarks/hardware/`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from opcodes import opcodes_of
from recorded_rows import (
    AGREEMENT,
    EXCLUDED,
    LAXER,
    Recorded,
    compare,
    is_approximate,
    is_in_table,
    largest_difference,
    pairs,
    record,
    recorded,
)
from row_kernel import instance_of

from triptych.core.settings import scope
from triptych.gpu.isa import TABLE, Effect

NOT_RECORDED = {
    r"setp\..*\.b?f16": "recorded by itself, see `test_edges.py`",
    r".*\.f32x2|.*\.tf32\.f32|(min|max)(\.ftz)?(\.NaN)?\.abs\.f32|\w+(\.r\w)?(\.sat)?\.f32\.b?f16": "needs sm_100",
    r".*\.[us]8x4|add\.sat\.[us](16x2|32)|cvt\S*(e2m3|e3m2|e2m1|ue8m0)x2\S*|cvt\S*bf16x2\S*": "needs later ones",
    r"mov\.b128|vset[24].*|mbarrier\.pending_count.*": "came later",
}
"""Patterns of opcodes."""
MOST_SHOWN = 8


@pytest.fixture(autouse=True)
def one_worker() -> Iterator[None]:
    with scope(workers=1):
        yield


@pytest.mark.parametrize("row", recorded(), ids=lambda row: row.name)
def test_results_are_those_of_the_device(row: Recorded) -> None:
    stated = json.loads(AGREEMENT.read_text())["opcodes"]
    faults: list[str] = []
    for compared in compare(row):
        opcode = compared.instance.opcode
        if not is_approximate(opcode):
            if not compared.is_same:
                faults.append(compared.first_difference())
            continue
        found = list(pairs(compared))
        faults += [f"{opcode}: {pair} contradicts the manual" for pair in found if not pair.accepts_both()]
        apart = [pair for pair in found if pair.is_bounded and pair.difference > pair.allowed]
        faults += [f"{opcode}: {pair} are further apart than the manual's error" for pair in apart]
        measured = "same" if compared.is_same else largest_difference(opcode, found)
        if stated.get(opcode) != measured:
            faults.append(f"{opcode} differs by {measured}, {AGREEMENT.name} says {stated.get(opcode)}")
    assert not faults, "\n".join(faults[:MOST_SHOWN])


def test_the_table_refuses_what_the_assembler_refuses() -> None:
    refused = {opcode for row in recorded() for opcode in row.refused if is_in_table(opcode)}
    laxer = {opcode for opcode in refused if any(re.fullmatch(pattern, opcode) for pattern in LAXER)}
    one_destination = {opcode for opcode in refused - laxer if re.fullmatch(r"setp\..*\.b?f16", opcode)}
    assert refused == laxer | one_destination
    for opcode in one_destination:
        assert len(instance_of(opcode, None).targets) == 1


def test_every_arithmetic_row_was_recorded() -> None:
    ran = {text.partition(" ")[0] for row in recorded() for text in row.kept}
    for row in TABLE:
        if row.effect is Effect.NONE and row.mnemonic not in EXCLUDED:
            opcodes = set(opcodes_of(row))
            excused = all(any(re.fullmatch(pattern, opcode) for pattern in NOT_RECORDED) for opcode in opcodes)
            assert opcodes & ran or excused, row.syntax


def test_the_record_says_where_it_is_from() -> None:
    assert record()["device"].startswith("NVIDIA H200")
    assert "--fmad=false" in record()["options"]
    assert json.loads(AGREEMENT.read_text())["device"] == record()["device"]
