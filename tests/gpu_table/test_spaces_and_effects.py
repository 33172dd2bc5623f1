"""The tables of spaces and effects: their columns against what meanings and machines do, and nothing left out."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from llvmlite import ir
from opcodes import some_opcodes_of

from triptych.core.counter_table import COUNTED
from triptych.core.errors import UnsupportedInstruction
from triptych.core.memory_access import Access
from triptych.gpu.isa import SPACES, TABLE, Effect, Form, Observation, Pipe, Row, Space, find_form
from triptych.gpu.isa.asynchronous.bulk_copy import BulkCopy
from triptych.gpu.isa.asynchronous.mbarrier_object import OPERATIONS, elements_of
from triptych.gpu.isa.binding import (
    WAYS_ROUND,
    Bound,
    BoundInstruction,
    bind,
    bind_in_clusters,
    reaches_other_blocks,
)
from triptych.gpu.isa.effects import Carrier
from triptych.gpu.isa.spaces import (
    ASYNCHRONOUS,
    BY_MODIFIER,
    CLUSTER,
    CONST,
    FRAME,
    GENERIC,
    GENERIC_IN_CLUSTERS,
    GLOBAL,
    LOCAL,
    PARAM,
    SHARED,
    TENSOR_SHARED,
    space_at,
)
from triptych.gpu.isa.table import row as add_row
from triptych.gpu.isa.tensor.matrix_descriptors import GroupProduct
from triptych.gpu.isa.types import U32, U64, ScalarType
from triptych.gpu.lower import memory
from triptych.gpu.lower.analysis.uniformity import UNIFORM, VARYING, Uniformity, UniformityMachine
from triptych.gpu.lower.linked_units import units_for
from triptych.gpu.lower.memory.admission import ADMISSIONS
from triptych.gpu.lower.memory.short import SHORT_WAYS
from triptych.gpu.lower.primitives.emitter import I64, POINTER, VOID, start_function
from triptych.gpu.lower.primitives.machine import LlvmMachine
from triptych.gpu.lower.primitives.values import Value
from triptych.gpu.lower.records import Context
from triptych.gpu.syntax.ast import Address, Instruction, Register
from triptych.gpu.tensor_map import TensorCopy

ACCESSING = [row for row in TABLE if row.effect.accesses]


class AccessingMachine(UniformityMachine):
    """Notes the accesses of a meaning: the space, the kind, and the bytes of a lane."""

    def __init__(self) -> None:
        self.seen: list[tuple[Space, Access, int]] = []
        self.symbols: set[str] = set()
        """Of the helpers that code for it calls, and of those that they call."""

    def load(self, space: Space, t: ScalarType, address: Uniformity, count: int) -> Sequence[Uniformity]:
        self._note(space, "load", memory.HelperAccess("load", space.helper, t.bytes, count))
        return super().load(space, t, address, count)

    def store(self, space: Space, t: ScalarType, address: Uniformity, values: Sequence[Uniformity]) -> None:
        self._note(space, "store", memory.HelperAccess("store", space.helper, t.bytes, len(values)))

    def atomic(
        self, space: Space, operation: str, t: ScalarType, address: Uniformity, operands: Sequence[Uniformity]
    ) -> Sequence[Uniformity]:
        count = elements_of(operation, len(operands))
        self._note(space, "atomic", memory.atomic_access(operation, space.helper, t, count))
        return super().atomic(space, operation, t, address, operands)

    def copy_to_shared(self, size: int, target: Uniformity, source: Uniformity, source_size: Uniformity) -> None:
        self.seen.append((GLOBAL, "load", size))
        self.seen.append((SHARED, "store", size))
        admissions = (memory.admission_name(space, size) for space in (GLOBAL, SHARED))
        self.symbols.update((memory.copy_name(size), *admissions, memory.BYTEWISE.name))

    def load_matrix(self, address: Uniformity, count: int, transposed: bool) -> Sequence[Uniformity]:
        self._note_rows("load", memory.load_matrix_name(count, transposed))
        return super().load_matrix(address, count, transposed)

    def copy_bulk(
        self, copy: BulkCopy, target: Uniformity, source: Uniformity, size: Uniformity, barrier: Uniformity,
        blocks: Uniformity,
    ) -> None:  # fmt: skip
        self.seen.append((copy.source, "load", 16))
        self.seen.append((copy.target, "store" if copy.type is None else "atomic", 16))

    def copy_tensor(
        self, copy: TensorCopy, tensor_map: Uniformity, coordinates: Sequence[Uniformity], shared: Uniformity,
        offsets: Sequence[Uniformity], barrier: Uniformity | None, blocks: Uniformity | None,
    ) -> None:  # fmt: skip
        loads, written = copy.operation == "load", "store" if copy.operation in ("load", "store") else "atomic"
        self.seen.append((GLOBAL if loads else ASYNCHRONOUS, "load", 16))
        self.seen.append((ASYNCHRONOUS if loads else GLOBAL, written, 16))

    def copy_tensor_map(self, target: Uniformity, source: Uniformity) -> None:
        self._note(SHARED, "load", memory.HelperAccess("load", SHARED, 4, 1))
        self._note(GLOBAL, "store", memory.HelperAccess("store", GLOBAL, 4, 1))

    def store_matrix(self, address: Uniformity, matrices: Sequence[Uniformity], transposed: bool) -> None:
        self._note_rows("store", memory.store_matrix_name(len(matrices), transposed))

    def multiply_group(
        self, product: GroupProduct, sums: Sequence[Uniformity], a: Sequence[Uniformity], b: Uniformity,
        keeps: Uniformity,
    ) -> Sequence[Uniformity]:  # fmt: skip
        self.seen.append((TENSOR_SHARED, "load", 16))
        return super().multiply_group(product, sums, a, b, keeps)

    def _note(self, space: Space, kind: Access, helper: memory.HelperAccess) -> None:
        self.seen.append((space, kind, helper.bytes))
        self.symbols.update((helper.name, memory.admission_name(helper.space, helper.bytes)))
        self.symbols.update(memory.admit_name(space) for space in (helper.space, *helper.space.reaches))

    def _note_rows(self, kind: Access, symbol: str) -> None:
        self.seen.append((SHARED, kind, memory.MATRIX_ROW_BYTES))
        self.symbols.update((symbol, memory.admission_name(SHARED, memory.MATRIX_ROW_BYTES)))


def forms(row: Row) -> Iterator[tuple[Instruction, Form]]:
    for opcode in some_opcodes_of(row, 40):
        mnemonic, *modifiers = opcode.split(".")
        form = find_form(mnemonic, tuple(modifiers))
        assert form is not None
        literal = 8 if row.effect.size_operand else 0
        yield Instruction(mnemonic, tuple(modifiers), (), None, 1), replace(form, immediates=(literal,))


def carry_out(row: Row, form: Form) -> AccessingMachine:
    machine = AccessingMachine()
    count = form.words[1] if row.effect in (Effect.STORE, Effect.STORE_MATRIX, Effect.STORE_ASYNC, Effect.ATOMIC) else 1
    fragments = form.fragments
    sources = [slot for slot in row.operands if slot.is_read or not slot.is_destination]
    wide = [s.name for s in sources if form.operand_type(s).bits == 128 and not s.is_address]
    counts = (
        fragments[s.name].registers if s.name in fragments else 2 if s.name in wide else count * s.may_be_vector or 1
        for s in sources
    )
    row.meaning(machine, form, *[VARYING] * sum(counts))
    return machine


# --- Effects ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row", [row for row in TABLE if row.effect.has_meaning], ids=lambda row: row.syntax.partition(" ")[0]
)
def test_accesses_are_those_of_the_meaning(row: Row) -> None:
    for _, form in forms(row):
        told = [(space, kind, form.lane_bytes) for space, kind in form.accesses]
        assert list(dict.fromkeys(carry_out(row, form).seen)) == told


@pytest.mark.parametrize("row", ACCESSING, ids=lambda row: row.syntax.partition(" ")[0])
def test_kernels_are_linked_with_the_helpers_that_meanings_ask_for(row: Row) -> None:
    address = Bound(Address(Register("%rd1"), 0), U64, is_address=True)
    for instruction, form in forms(row):
        units = units_for([BoundInstruction(instruction, form, (), (address,))])
        linked = {symbol for unit in units for symbol in unit.symbols}
        assert carry_out(row, form).symbols <= linked


@pytest.mark.parametrize("effect", Effect, ids=lambda effect: effect.name)
def test_columns_of_effects_agree(effect: Effect) -> None:
    assert effect.has_meaning or not effect.accesses, "executors that know no meaning know no access"
    assert not effect.ends_block or not (effect.has_meaning or effect.has_destination)
    assert not effect.leaves or effect.ends_block
    assert not effect.ends_block or effect.carrier in (Carrier.BLOCK_END, Carrier.TRAP)
    assert not effect.waits or effect.carrier is Carrier.BLOCK_END
    assert not effect.waits or effect.is_block_barrier or effect is Effect.CLUSTER_WAIT
    assert not effect.combines or (effect.waits and effect.has_destination)
    assert effect.observes is Observation.NOTHING or any(kind != "store" for _, kind in effect.accesses)
    assert effect is Effect.HOST_CALL or any(row.effect is effect for row in TABLE), "an effect of no row"


def mnemonics(rows: Iterator[Row]) -> set[str]:
    return {row.mnemonic for row in rows}


def test_columns_name_what_the_manual_names() -> None:
    written = {Effect.STORE, Effect.STORE_MATRIX, Effect.STORE_FRAGMENT, Effect.ATOMIC, Effect.COPY}
    written |= {Effect.MBARRIER, Effect.MBARRIER_REMOTE, Effect.MBARRIER_COPIES}
    written |= {Effect.STORE_ASYNC, Effect.REDUCTION_ASYNC}
    written |= {effect for effect in Effect if effect.is_bulk or effect.copies_boxes}
    written |= {Effect.COPY_MAP, Effect.STORE_FIELD}
    assert {effect for effect in Effect if effect.writes} == written
    strong = {"ld.volatile", "ld.mmio", "ld.order", "atom", "red"}  # 9.7.9.8: no plain load is
    observing = [row for row in TABLE if row.observes is Observation.STRONG]
    seen = {r.syntax.partition("{")[0].split(".scope")[0] for r in observing if r.effect is not Effect.MBARRIER_TEST}
    assert {name.removesuffix(".order.sys") for name in seen} == strong
    assert {row.effect for row in TABLE if {"test_wait", "try_wait"} & row.literals} == {Effect.MBARRIER_TEST}
    unseen = [row for row in TABLE if row.effect is Effect.LOAD and row.observes is Observation.NOTHING]
    assert unseen == [row for row in TABLE if row.effect is Effect.LOAD and "nc" in row.literals]  # 9.7.9.9
    assert mnemonics(row for row in TABLE if row.aligned) == {"bar"}  # 9.7.13.1
    assert mnemonics(row for row in TABLE if row.converts_addresses) == {"cvta"}  # 9.7.9.20
    assert mnemonics(row for row in TABLE if row.names_blocks) == {"mapa"}  # 9.7.9.24
    assert {(row.mnemonic, row.operation) for row in TABLE if row.operation and row.operation not in OPERATIONS} == {
        ("atom", "cas"),
        ("atom", "cas2"),
        ("cp", "load"),
        ("cp", "store"),
    }


@pytest.mark.parametrize(
    ("opcode", "observes"),
    [
        ("ld.global.u32", Observation.WEAK), ("ld.shared.u32", Observation.WEAK), ("ld.u32", Observation.WEAK),
        ("ld.volatile.shared.u32", Observation.STRONG), ("ld.acquire.gpu.u32", Observation.STRONG),
        ("ld.global.nc.u32", Observation.NOTHING), ("ld.param.u32", Observation.NOTHING),
        ("ld.const.u32", Observation.NOTHING), ("ld.volatile.local.u32", Observation.NOTHING),
        ("ld.param::func.u32", Observation.WEAK), ("atom.add.u32", Observation.STRONG),
        ("st.global.u32", Observation.NOTHING), ("add.u32", Observation.NOTHING),
    ],
)  # fmt: skip
def test_what_results_tell_of_other_threads(opcode: str, observes: Observation) -> None:
    mnemonic, *modifiers = opcode.split(".")
    form = find_form(mnemonic, tuple(modifiers))
    assert form is not None
    assert form.observes is observes


@pytest.mark.parametrize(
    ("opcode", "aligned"), [("bar.sync", True), ("barrier.sync", False), ("barrier.sync.aligned", True)]
)
def test_barriers_of_whole_warps(opcode: str, aligned: bool) -> None:
    mnemonic, *modifiers = opcode.split(".")
    barrier = bind(Instruction(mnemonic, tuple(modifiers), (Register("%r1"),), None, 1)).barrier
    assert barrier is not None
    assert barrier.aligned is aligned


# --- Spaces -------------------------------------------------------------------------------------------------------


def reached() -> set[Space]:
    """The spaces that some row's accesses reach."""
    return {space for row in ACCESSING for _, form in forms(row) for space, _ in form.accesses}


def test_every_space_that_rows_reach_has_its_ways() -> None:
    assert reached() == {GLOBAL, CONST, PARAM, SHARED, CLUSTER, ASYNCHRONOUS, TENSOR_SHARED, LOCAL, FRAME, GENERIC}
    for space in reached() | {GENERIC_IN_CLUSTERS}:
        assert space.helper in ADMISSIONS, f"lower/memory/admission has no way for {space}"
        for site in space.sites:
            assert site.helper in ADMISSIONS, f"{space} reaches {site}, which has no way"
            assert not site.reaches, f"{site} is a site, and has sites of its own"
    assert memory.WINDOWS.keys() | SHORT_WAYS.keys() <= ADMISSIONS.keys()
    for window in memory.WINDOWS.values():
        assert {window.base, window.size} <= set(Context.names())


def test_spaces_are_told_apart() -> None:
    assert len({space.name for space in SPACES}) == len(SPACES)
    assert len(BY_MODIFIER) == sum(len(space.modifiers) for space in SPACES)
    assert BY_MODIFIER["shared::cta"] is SHARED
    assert BY_MODIFIER["shared::cluster"] is CLUSTER
    assert BY_MODIFIER["param::entry"] is PARAM
    assert BY_MODIFIER["param::func"] is FRAME


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_a_space_stays_itself(space: Space) -> None:
    assert pickle.loads(pickle.dumps(space)) is space


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_requests_count_into_counters_that_there_are(space: Space) -> None:

    for kind in () if space.counted_as is None else ("load", "store", "atomic"):
        assert f"{space.counted_as}.{kind}.requests" in COUNTED
        assert f"{space.counted_as}.{kind}.bytes" in COUNTED
        assert space.cost is None or f"{space.counted_as}.{kind}.{space.cost.value}" in COUNTED


def test_generic_addresses_reach_the_space_of_their_window() -> None:
    for space in (SHARED, LOCAL):
        assert space_at(space.window) is space
        assert space_at(space.window + (1 << 32) - 1) is space
        assert space_at(space.window - 1) is not space
        assert space_at(space.window + (1 << 32)) is not space
    assert space_at(0) is GLOBAL
    assert space_at(PARAM.window) is GLOBAL, "parameters are read as a storage of the launch"


@pytest.mark.parametrize("space", sorted(reached(), key=str), ids=str)
@pytest.mark.parametrize("address", [UNIFORM, VARYING], ids=["uniform", "varying"])
def test_loads_are_as_uniform_as_the_table_says(space: Space, address: Uniformity) -> None:
    module = ir.Module()
    e = start_function(module, "kernel", VOID, [POINTER, POINTER, POINTER, I64])
    context, warp, site, place = e.function.args
    machine = LlvmMachine(e, context, warp)
    machine.site, machine.parameter_bytes = site, 64
    where = Value(place, True) if address is UNIFORM else Value(e.splat(place), False)
    (loaded,) = machine.load(space, U32, where, 1)
    (promised,) = UniformityMachine().load(space, U32, address, 1)
    assert loaded.uniform == (promised == UNIFORM)


def test_a_row_names_no_space_that_the_table_has_not() -> None:
    groups = {"space": "global shared::nosuch"}
    with pytest.raises(ValueError, match="the table of spaces has no shared::nosuch"):
        add_row("ld.space.u32 d, [a]:u64", section="1", pipe=Pipe.LOAD_STORE, groups=groups)(_no_meaning)
    assert find_form("ld", ("shared::nosuch", "u32")) is None


def _no_meaning() -> None:
    """Nothing."""


def test_generic_addresses_are_of_other_blocks_only_where_a_kernel_makes_such() -> None:
    load = Instruction("ld", ("u32",), (Register("%r1"), Address(Register("%rd1"), 0)), None, 1)
    assert not reaches_other_blocks([load])
    assert reaches_other_blocks([load, Instruction("mapa", ("u64",), (), None, 2)])
    assert bind(load).form.space is GENERIC
    assert bind_in_clusters(load).form.space is GENERIC_IN_CLUSTERS
    linked = [{s for unit in units_for([one]) for s in unit.symbols} for one in (bind(load), bind_in_clusters(load))]
    assert [memory.admit_name(CLUSTER) in symbols for symbols in linked] == [False, True]


# --- What has no row ----------------------------------------------------------------------------------------------


def test_ways_round_are_told_of_instructions_without_a_row() -> None:
    assert WAYS_ROUND.keys().isdisjoint(row.mnemonic for row in TABLE)


@pytest.mark.parametrize("opcode", ["ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", "ldmatrix.sync.aligned.m8n8.x2"])
def test_another_form_of_ldmatrix_is_not_told_of_tensor_cores(opcode: str) -> None:
    mnemonic, *modifiers = opcode.split(".")
    with pytest.raises(UnsupportedInstruction, match=f"'{opcode}' is not supported") as caught:
        bind(Instruction(mnemonic, tuple(modifiers), (), None, 1))
    assert caught.value.hint == "`triptych instructions` lists what is supported"
    with pytest.raises(UnsupportedInstruction) as caught:
        bind(Instruction("tcgen05", ("wait::ld", "sync", "aligned"), (), None, 1))
    assert "tl.dot" in (caught.value.hint or "")
