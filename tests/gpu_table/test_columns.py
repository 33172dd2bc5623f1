"""What the columns say beside the meaning, against the meaning itself and the manual; and the machines' primitives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from opcodes import some_opcodes_of, source_count

from triptych.core.counter_table import COUNTER_ROW
from triptych.core.errors import UnsupportedInstruction
from triptych.gpu.isa import TABLE, Effect, Form, Row, find_form
from triptych.gpu.isa.binding import bind
from triptych.gpu.isa.machine import Machine
from triptych.gpu.isa.table import effect_of
from triptych.gpu.isa.types import ScalarType, packed_element
from triptych.gpu.lower.analysis.find_loose_registers import NanMachine
from triptych.gpu.lower.analysis.uniformity import UNIFORM, VARYING, Uniformity, UniformityMachine
from triptych.gpu.lower.primitives.machine import LlvmMachine
from triptych.gpu.oracle.machine import NumpyMachine
from triptych.gpu.syntax import parse
from triptych.gpu.syntax.ast import Instruction, Register

PRIMITIVES = sorted(name for name in vars(Machine) if not name.startswith("_"))


class RecordingMachine(UniformityMachine):
    """Notes whether values moved between lanes, and what was rounded other than to nearest."""

    def __init__(self) -> None:
        self.shuffled = False
        self.directed: set[tuple[str, str]] = set()

    def float_directed(self, t: ScalarType, operation: str, mode: str, *operands: Uniformity) -> Uniformity:
        self.directed.add((operation, t.name))
        return super().float_directed(t, operation, mode, *operands)

    def shuffle(self, t: ScalarType, a: Uniformity, source_lane: Uniformity) -> Uniformity:
        self.shuffled = True
        return super().shuffle(t, a, source_lane)

    def exchange(self, t: ScalarType, a: Uniformity, source_lane: Uniformity, mask: Uniformity) -> Uniformity:
        self.shuffled = True
        return super().exchange(t, a, source_lane, mask)


def forms(row: Row) -> Iterator[Form]:
    for opcode in some_opcodes_of(row, 20):
        mnemonic, *modifiers = opcode.split(".")
        form = find_form(mnemonic, tuple(modifiers))
        assert form is not None
        yield replace(form, immediates=(4 if row.effect.size_operand else 0,))


@pytest.mark.parametrize("machine", [LlvmMachine, NumpyMachine, UniformityMachine, NanMachine])
@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_every_machine_has_every_primitive(machine: type, primitive: str) -> None:
    assert callable(getattr(machine, primitive))


def test_an_unknown_primitive_is_an_error() -> None:
    with pytest.raises(AttributeError):
        getattr(UniformityMachine(), "permute_bytes")  # noqa: B009


def with_meaning() -> list[Row]:
    return [row for row in TABLE if row.effect.has_meaning]


@pytest.mark.parametrize("row", with_meaning(), ids=lambda row: row.syntax.partition(" ")[0])
@pytest.mark.parametrize("value", [UNIFORM, VARYING], ids=["uniform", "varying"])
def test_shuffles_says_what_the_meaning_does(row: Row, value: Uniformity) -> None:
    for form in forms(row):
        machine = RecordingMachine()
        row.meaning(machine, form, *[value] * source_count(form))
        assert machine.shuffled == row.shuffles


@pytest.mark.parametrize(
    "row", [r for r in with_meaning() if "rnd" in r.groups or r.rounds], ids=lambda row: row.syntax
)
def test_rounds_says_what_the_meaning_asks_for(row: Row) -> None:
    for form in forms(row):
        machine = RecordingMachine()
        row.meaning(machine, form, *(VARYING for slot in row.operands if not slot.is_destination))
        nearest = form.get("rnd", "rn") == "rn"
        assert machine.directed == (
            set() if nearest or not row.rounds else {(row.rounds, packed_element(form.type).name)}
        )


def mnemonics(rows: Iterator[Row]) -> set[str]:
    return {f"{row.mnemonic}.warp" if "warp" in row.literals else row.mnemonic for row in rows}


def test_columns_name_what_the_manual_names() -> None:
    together = {"shfl", "vote", "redux", "match", "elect", "bar.warp"}  # 9.7.9.6, 9.7.13
    assert mnemonics(r for r in TABLE if r.has_membermask) == together
    assert mnemonics(r for r in TABLE if r.wider_registers) == {"ld", "ldu", "st", "cvt"}  # 9.4.1
    assert mnemonics(r for r in TABLE if r.counts == "branches") == {"bra", "brx"}
    assert mnemonics(r for r in TABLE if r.counts == "barriers") == {"bar", "barrier", "bar.warp"}
    assert {r.counts for r in TABLE} == {None, "branches", "barriers"}
    assert mnemonics(r for r in TABLE if r.effect is Effect.BLOCK_BARRIER) == {"bar", "barrier"}


@pytest.mark.parametrize(
    ("opcode", "effect"),
    [
        ("barrier.cluster.arrive", Effect.CLUSTER_ARRIVAL), ("barrier.cluster.wait.acquire", Effect.CLUSTER_WAIT),
        ("bar.sync", Effect.BLOCK_BARRIER), ("bar.warp.sync", Effect.WARP_BARRIER), ("bra.uni", Effect.BRANCH),
        ("brx.idx", Effect.SWITCH), ("ret", Effect.RETURN), ("ret.nosuch", Effect.RETURN), ("trap", Effect.TRAP),
        ("nosuch.u32", Effect.NONE), ("prefetch.global.L1", Effect.ORDER), ("fence.sc.gpu", Effect.ORDER),
        ("cp.async.wait_all", Effect.AWAIT_ALL_COPIES), ("cp.async.ca.shared.global", Effect.COPY),
    ],
)  # fmt: skip
def test_effects_are_known_before_operands(opcode: str, effect: Effect) -> None:
    mnemonic, *modifiers = opcode.split(".")
    assert effect_of(mnemonic, tuple(modifiers)) is effect


def instruction(text: str) -> Instruction:
    head = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { .reg .b32 %r<4>; .reg .pred %p<2>;\n"
    return next(s for s in parse(f"{head}{text}\nret; }}").functions["k"].body or () if isinstance(s, Instruction))


def test_the_membermask_is_the_last_operand() -> None:
    bound = bind(instruction("shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, %r3;"))
    assert bound.membermask is not None
    assert bound.membermask.operand == Register("%r3")
    assert bind(instruction("activemask.b32 %r1;")).membermask is None
    with pytest.raises(UnsupportedInstruction, match="takes the operands 'membermask:u32'"):
        bind(instruction("bar.warp.sync;"))


@pytest.mark.parametrize(
    ("opcode", "counter", "flops"),
    [
        ("add.f32", "flops.f32", 1), ("fma.rn.f64", "flops.f64", 2), ("add.f16", "flops.f16", 1),
        ("fma.rn.f16x2", "flops.f16", 4), ("mul.bf16x2", "flops.bf16", 2), ("fma.rn.f32x2", "flops.f32", 4),
        ("div.rn.f32", "flops.f32", 1), ("ex2.approx.f16x2", "flops.f16", 2),
    ],
)  # fmt: skip
def test_where_flops_go(opcode: str, counter: str, flops: int) -> None:
    mnemonic, *modifiers = opcode.split(".")
    form = find_form(mnemonic, tuple(modifiers))
    assert form is not None
    assert (form.flop_counter, form.flops) == (counter, flops)


def test_a_row_may_name_the_pipe_of_its_flops() -> None:
    form = find_form("fma", ("rn", "f16"))
    assert form is not None
    assert replace(form, row=replace(form.row, flop_pipe="tensor.f16")).flop_counter == "flops.tensor.f16"


@pytest.mark.parametrize("row", [row for row in TABLE if row.flops], ids=lambda row: row.syntax)
def test_flops_go_to_a_counter_that_there_is(row: Row) -> None:
    for opcode in some_opcodes_of(row, 100):
        mnemonic, *modifiers = opcode.split(".")
        form = find_form(mnemonic, tuple(modifiers))
        assert form is not None
        assert form.flop_counter in COUNTER_ROW["gpu"], opcode
        assert form.flops > 0
