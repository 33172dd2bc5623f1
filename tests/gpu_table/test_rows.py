"""Every arithmetic row of the table: generated code, the oracle and a witness that never reads the table agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from expected import accepts
from opcodes import opcodes_of, read_opcode
from row_kernel import Result, run_row
from witnesses import find_witness

from triptych.core.settings import scope
from triptych.gpu.isa import TABLE, Effect, Row

ROWS = [row for row in TABLE if row.effect is Effect.NONE and "b128" not in row.types]
"""Those of 128 bits are tested by whole kernels (`tests/gpu_differential`)."""
MOST_SHOWN = 8


def name_of(row: Row) -> str:
    return f"{row.syntax.partition(' ')[0]}:{row.types.replace(' ', ',')}"


@pytest.fixture(autouse=True)
def one_worker() -> Iterator[None]:
    with scope(workers=1):
        yield


def test_no_row_lacks_a_witness() -> None:
    lacking = [opcode for row in ROWS for opcode in opcodes_of(row) if find_witness(read_opcode(opcode)) is None]
    assert lacking == []


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_three_witnesses_agree(row: Row) -> None:
    faults: list[str] = []
    for result in run_row(row):
        faults += _differences(result)
        faults += _contradictions(result)
    shown = "\n".join(faults[:MOST_SHOWN])
    assert not faults, f"{len(faults)} results of '{row.syntax}' are wrong:\n{shown}"


def _differences(result: Result) -> list[str]:
    faults: list[str] = []
    for fast, slow in zip(result.generated, result.oracle, strict=True):
        for case in np.flatnonzero(fast != slow)[:MOST_SHOWN]:
            operands = _show(result, int(case))
            faults.append(f"{operands}: generated {int(fast[case]):#x}, oracle {int(slow[case]):#x}")
    return faults


def _contradictions(result: Result) -> list[str]:
    instance = result.instance
    op = read_opcode(instance.opcode)
    witness = find_witness(op)
    assert witness is not None
    faults: list[str] = []
    rows = zip(instance.operands, zip(*(bits.tolist() for bits in result.oracle), strict=True), strict=True)
    for case, (operands, given) in enumerate(rows):
        expected = witness(op, *instance.with_immediate(operands))
        for name, wanted, bits in zip(instance.targets, expected, given, strict=True):
            if not accepts(wanted, name, bits):
                faults.append(f"{_show(result, case)}: got {bits:#x}, the witness says {wanted}")
    return faults


def _show(result: Result, case: int) -> str:
    instance = result.instance
    operands = ", ".join(f"{value:#x}" for value in instance.operands[case])
    return f"{instance.opcode} {operands}{'' if instance.immediate is None else f', {instance.immediate:#x}'}"
