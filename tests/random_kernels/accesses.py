"""Statements that reach memory: loads, stores, atomic operations and copies, of any row of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from arithmetic import draw_opcode, drawable, form_of
from grammar import Statement, plain
from operands import Source
from places import AREA_BYTES, AREAS, CELL_BYTES, Shape

from triptych.gpu.isa import TABLE, Effect, Form
from triptych.gpu.isa.spaces import GENERIC, SHARED
from triptych.gpu.isa.types import ScalarType

_LOADS, _STORES, _ATOMICS, _COPIES = (
    drawable(row for row in TABLE if row.effect is effect)
    for effect in (Effect.LOAD, Effect.STORE, Effect.ATOMIC, Effect.COPY)
)
_READ_ONLY = frozenset(("nc", "ldu"))
_ANY_ORDER = frozenset(("add", "min", "max", "and", "or", "xor", "inc", "dec"))


@dataclass(slots=True)
class Accesses:
    """Writes the statements of one kernel; remembers which area takes which atomic operation."""

    source: Source
    shape: Shape
    areas: dict[tuple[str, str, str], int] = field(default_factory=dict[tuple[str, str, str], int])

    def any(self) -> Statement:
        """Any access."""
        kind = self.source.random.random()
        if kind < 0.42:
            return self.load()
        if kind < 0.72:
            return self.store()
        return self.atomic() if kind < 0.94 else self.copy()

    def _operands(self, form: Form, address: str, elements: Sequence[str], *more: str) -> str:
        """All operands of an instruction, in order."""
        held = f"{{{', '.join(elements)}}}" if form.elements > 1 else elements[0] if elements else ""
        given: list[str] = []
        for slot in form.row.operands:
            if slot.is_address:
                given.append(address)
            elif slot.name == "policy":
                given.append("%b5")
            elif slot.is_destination or slot.name == "b":
                given.append(held)
        return ", ".join((*given, *more))

    # Loads and stores -------------------------------------------------------------------------------------------

    def load(self) -> Statement:
        """Any load."""
        source = self.source
        while True:
            row = source.random.choice(_LOADS)
            opcode = draw_opcode(row, source.random)
            form = form_of(opcode)
            only_read = row.mnemonic in _READ_ONLY or "nc" in row.literals
            place = self._place(form, store=False, only_read=only_read)
            if place is not None:
                break
        lines, address = place
        targets = self._targets(form)
        return plain(*lines, f"{source.guard()}{opcode} {self._operands(form, address, targets)};")

    def store(self) -> Statement:
        """Any store."""
        source = self.source
        while True:
            row = source.random.choice(_STORES)
            opcode = draw_opcode(row, source.random)
            form = form_of(opcode)
            place = self._place(form, store=True)
            if place is not None:
                break
        lines, address = place
        slot = next(slot for slot in row.operands if slot.name == "b")
        values = source.registers(form, slot)
        return plain(*lines, f"{source.guard()}{opcode} {self._operands(form, address, values)};")

    def _place(self, form: Form, *, store: bool, only_read: bool = False) -> tuple[list[str], str] | None:
        size = form.lane_bytes
        if only_read:
            if size > 16 and form.row.mnemonic == "ldu":
                return None
            offset = size * self.source.random.randrange(16)
            line = f"and.b32 %x0, {self.source.word()}, 15;"
            return [line, f"mad.wide.u32 %y0, %x0, {size}, %b0;"], f"[%y0+{offset}]"
        return self.shape.element(self.source, form.space, size, store=store)

    def _targets(self, form: Form) -> list[str]:
        slot = next(slot for slot in form.row.operands if slot.is_destination)
        return self.source.registers(form, slot)

    # Atomic operations ------------------------------------------------------------------------------------------

    def atomic(self) -> Statement:
        """Any atomic operation: on the thread's own cell, or one of which the order does not matter on all's."""
        source = self.source
        row = source.random.choice(_ATOMICS)
        opcode = draw_opcode(row, source.random)
        form = form_of(opcode)
        area = self._area(form) if source.chance(0.6) else None
        return plain(*(self._private(form, opcode) if area is None else self._common(form, opcode, *area)))

    def _private(self, form: Form, opcode: str) -> tuple[str, ...]:
        source, size = self.source, form.lane_bytes
        base = {"global": "%b3", "shared": "%s1", "generic": source.random.choice(("%b3", "%b10"))}[form.space.name]
        address = f"[{base}+{size * source.random.randrange(max(1, CELL_BYTES // size))}]"
        if size > CELL_BYTES:
            return (f"add.u32 {source.word()}, {source.word()}, 1;",)
        slots = {slot.name: slot for slot in form.row.operands}
        values = source.registers(form, slots["b"])
        compared = [source.register(form, slots["c"])] if "c" in slots else []
        text = self._atomic_operands(form, address, values, compared)
        return (f"{source.guard()}{opcode} {text};",)

    def _atomic_operands(
        self, form: Form, address: str, values: Sequence[str], compared: Sequence[str], target: str = ""
    ) -> str:
        row = form.row
        given: list[str] = []
        if row.operands[0].is_destination:
            found = self._targets(form)
            given.append(target or (f"{{{', '.join(found)}}}" if form.elements > 1 else found[0]))
        given += [address, f"{{{', '.join(values)}}}" if form.elements > 1 else values[0], *compared]
        return ", ".join(given + ["%b5"] * (row.operands[-1].name == "policy"))

    def _area(self, form: Form) -> tuple[str, int] | None:
        """The memory and the area of an operation of all threads, None where order or rounding would matter."""
        operation, t = form.get("operation"), form.type
        if operation not in _ANY_ORDER or form.elements > 1 or t.bits < 32 or t.name.endswith("x2"):
            return None
        if t.is_float and operation != "add":
            return None
        place = "shared" if form.space is SHARED else "global"
        if form.space is GENERIC:
            place = self.source.random.choice(("global", "shared"))
        key = (place, operation, t.name)
        if key not in self.areas and sum(one[0] == place for one in self.areas) >= AREAS:
            return None
        return place, self.areas.setdefault(key, sum(one[0] == place for one in self.areas))

    def _common(self, form: Form, opcode: str, place: str, area: int) -> tuple[str, ...]:
        source, t = self.source, form.type
        mask = source.random.choice((0, 1, 3, AREA_BYTES // t.bytes - 1))
        lines = [f"and.b32 %x0, {source.random.choice((source.word(), '%t0'))}, {mask};"]
        base = "%b4" if place == "global" else "%b11"
        if form.space is SHARED:
            lines += ["mov.u32 %x1, tile;", f"mad.lo.u32 %x1, %x0, {t.bytes}, %x1;"]
            address = f"[%x1+{self.shape.common_at + area * AREA_BYTES}]"
        else:
            lines.append(f"mad.wide.u32 %y0, %x0, {t.bytes}, {base};")
            address = f"[%y0+{area * AREA_BYTES}]"
        value, more = self._common_value(form, t)
        target = "" if source.chance(0.5) else "_"
        letter = {32: "%x2", 64: "%y1"}[t.bits] if not t.is_float else {32: "%u1", 64: "%v1"}[t.bits]
        operands = self._atomic_operands(form, address, [value], [], target or letter)
        return (*lines, *more, f"{source.guard()}{opcode} {operands};")

    def _common_value(self, form: Form, t: ScalarType) -> tuple[str, list[str]]:
        """A value of which the sum, or whatever it is, depends on no order."""
        source = self.source
        if form.get("operation") in ("inc", "dec"):
            return "13", []
        if not t.is_float:
            return source.register(form, next(slot for slot in form.row.operands if slot.name == "b")), []
        target = {32: "%u0", 64: "%v0"}[t.bits]
        return target, [f"and.b32 %x3, {source.word()}, 7;", f"cvt.rn.{t.name}.u32 {target}, %x3;"]

    # Copies -----------------------------------------------------------------------------------------------------

    def copy(self) -> Statement:
        """A copy from global to the thread's own shared memory, and its end."""
        source = self.source
        row = source.random.choice(_COPIES)
        opcode = draw_opcode(row, source.random)
        size = 16 if ".cg" in opcode else source.random.choice((4, 8, 16))
        lines = [f"and.b32 %x0, {source.word()}, 31;", f"mad.wide.u32 %y0, %x0, {size}, %b0;"]
        operands = f"[%s0+{size * source.random.randrange(64 // size)}], [%y0], {size}"
        if source.chance(0.4):
            lines.append(f"and.b32 %x2, {source.word()}, {source.random.choice((size, size - 1))};")
            operands += source.random.choice((", %x2", f", {source.random.randrange(size + 1)}"))
        operands += ", %b5" * (row.operands[-1].name == "policy")
        end = source.random.choice((("cp.async.wait_all;",), ("cp.async.commit_group;", "cp.async.wait_group 0;")))
        return plain(*lines, f"{source.guard()}{opcode} {operands};", *end)
