"""Forms of instructions as `ptxas` has them, recorded (`tests/data/forms`): which there are, and for which targets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypedDict

import pytest

from triptych.core.errors import PtxSyntaxError, TriptychError, UnsupportedInstruction
from triptych.gpu.isa.binding import bind, with_implied_registers
from triptych.gpu.isa.targets import describe, meets
from triptych.gpu.isa.verify import verify
from triptych.gpu.syntax import parse
from triptych.gpu.syntax.ast import Function, Instruction

_REGISTERS = " ".join(f".reg .{kind} %{letter}<40>;" for letter, kind in zip("pchrdq", (
    "pred", "b8", "b16", "b32", "b64", "b128"), strict=True))  # fmt: skip
MISSING: Mapping[str, str] = {
    r"fma\S*\.oob": "which bits mark what is out of bounds is not told",
    r"fma\.r[zmp](?!\S*\.f32)\S*\.bf16(x2)? |cvt\.rz\S*\.(e4m3|e5m2|e2m3|e3m2|e2m1|s2f6)x2\.": "sm_107 alone",
    r"(add|sub|mad)c\S*\.[us]16 |rcp\.r\w\.ftz\.f64 |(atom|red)\S*\.noftz\S*\.f32 |cvt(\.sat)?\.b?f16\.b?f16 |"
    r"fence\.proxy\.tensormap\S*\.sync_restrict|atom\S*\.exch\S* _, \[%d1\], %\w+, %\w+": "not in the manual",
    r"cvt\.rs\.": "how the random bits are used is not told",
    r"cvt\S*(\.s2f6x2|\.scaled::)": "what becomes of NaN is not told",
    r"cvta\S*\.u32 ": "generic addresses of 32 bits, which no program for these targets may have",
    r"brkpt": "a debugger",
    r"v(add|sub|absdiff|min|max|shl|shr|mad|set)\.|v\w+[24]\S* %r\d+\.": (
        "video instructions of one value, and selectors and masks of parts"
    ),
}
"""What `ptxas` takes and the table does not, by a pattern of statements, with the reason."""
LOOSE = (
    r"(ld|st)\S*\.param::func",  # for which ptxas wants a parameter by its name
    r"cvt\.sat\.(\w+) |cvt\.sat\.\w\d+\.\w\d+ ",  # where nothing can be clamped
    r"lop3\.(and|or|xor)\.b32 %r\d+, ",  # whose result need not be taken
    r"elect\.sync %r\d+, ",
    r"createpolicy\S*L2::evict_(first|unchanged)\.L2::evict_(last|normal)",  # in the other order
    r"(applypriority|discard)\S* \[%d1\], 64",
)
"""What the table takes and `ptxas` does not, to no harm."""


class Record(TypedDict):
    targets: list[str]
    accepted: dict[str, list[str]]
    refused: list[str]


@cache
def _record() -> Record:
    path = Path(__file__).parents[1] / "data/forms/forms.json"
    record: Record = json.loads(path.read_text("utf-8"))
    return record


def _statements(groups: Sequence[str]) -> Iterator[str]:
    for group in groups:
        operands, _, opcodes = group.partition("; ")
        yield from (f"{opcode} {operands}".strip() for opcode in opcodes.split())


def _is_one_of(patterns: Sequence[str], statement: str) -> bool:
    return any(re.match(pattern, f"{statement} ") for pattern in patterns)


def _read(statement: str, target: str) -> tuple[Instruction, Function]:
    head = f".version 9.4\n.target {target}\n.address_size 64\n"
    function = parse(f"{head}.entry k() {{ {_REGISTERS}\nLBL: {statement};\nret; }}").functions["k"]
    return next(s for s in function.body or () if isinstance(s, Instruction)), with_implied_registers(function)


def _fault(statement: str, target: str) -> TriptychError | None:
    """What is wrong with a statement in a module for a target."""
    try:
        instruction, function = _read(statement, target)
        verify(bind(instruction, function.registers), function.registers, target)
    except (PtxSyntaxError, UnsupportedInstruction) as error:
        return error
    return None


@pytest.mark.parametrize("having", _record()["accepted"], ids=lambda text: f"{text[:24]}-{len(text.split())}")
def test_what_ptxas_accepts_has_a_row_and_its_targets(having: str) -> None:
    wanted = having.split()
    for statement in _statements(_record()["accepted"][having]):
        if _is_one_of(tuple(MISSING), statement):
            continue
        instruction, function = _read(statement, wanted[0])
        bound = bind(instruction, function.registers)
        verify(bound, function.registers, wanted[0])
        needs = bound.form.needs
        met = [target for target in _record()["targets"] if all(meets(target, need) for need in needs)]
        assert met == wanted, f"{statement}: {needs}"


def test_what_is_missing_is_refused() -> None:
    statements = [s for groups in _record()["accepted"].values() for s in _statements(groups)]
    found = [s for s in statements if _is_one_of(tuple(MISSING), s)]
    assert [s for s in found if _fault(s, "sm_107a") is None] == []
    for pattern, reason in MISSING.items():
        assert any(_is_one_of((pattern,), s) for s in found), f"nothing is missing for the reason that {reason}"


def test_what_ptxas_refuses_is_refused() -> None:
    taken = [s for s in _statements(_record()["refused"]) if _fault(s, "sm_107a") is None]
    assert [s for s in taken if not _is_one_of(LOOSE, s)] == []


@pytest.mark.parametrize(
    ("statement", "target", "message"),
    [
        ("mapa.u64 %d1, %d2, %r1", "sm_80", "'mapa.u64': it needs .target sm_90 or higher, and this module's is sm_80"),
        ("add.f32x2 %d1, %d2, %d3", "sm_90a", "it needs .target sm_100 or higher, and this module's is sm_90a"),
        (
            "redux.sync.min.f32 %r1, %r2, %r3", "sm_120a",
            "it needs .target sm_100f, and this module's is sm_120a",
        ),
        ("ld.relaxed.cluster.b32 %r1, [%d1]", "sm_89", "it needs .target sm_90 or higher"),
        ("min.f32 %r1, %r2, %r3, %r4", "sm_90", "it needs .target sm_100 or higher"),
    ],
)  # fmt: skip
def test_the_target_that_is_needed_is_told(statement: str, target: str, message: str) -> None:
    error = _fault(statement, target)
    assert message in str(error)
    assert "(PTX line 5)" in str(error)
    assert _fault("min.f32 %r1, %r2, %r3", "sm_75") is None


def test_families_and_architectures() -> None:
    assert [target for target in _record()["targets"] if meets(target, "sm_100f")] == [
        "sm_100a", "sm_100f", "sm_103a", "sm_103f", "sm_107a", "sm_107f",
    ]  # fmt: skip
    assert [target for target in _record()["targets"] if meets(target, "sm_90a sm_120f")] == [
        "sm_90a", "sm_120a", "sm_120f", "sm_121a", "sm_121f",
    ]  # fmt: skip
    assert not meets("compute", "sm_80")
    assert describe("sm_90") == "sm_90 or higher"
    assert describe("sm_90a sm_100f sm_120f") == "sm_90a, sm_100f or sm_120f"
