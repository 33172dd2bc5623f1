"""Statements among lanes and among the threads of a block, and those that only order or hint."""

from __future__ import annotations

from arithmetic import ALWAYS_PAIRED, draw_opcode, drawable, form_of
from grammar import Statement, plain
from matrices import among_matrices
from operands import Source
from places import SLOT_BYTES, Shape

from triptych.gpu.isa import TABLE, Effect, Form, Row
from triptych.gpu.isa.spaces import SHARED

COPY_GROUPS = Effect.COMMIT_COPIES, Effect.AWAIT_COPIES, Effect.AWAIT_ALL_COPIES
_WARP = drawable(row for row in TABLE if row.effect is Effect.WARP and not row.takes_whole_warp)
_ORDER = drawable(row for row in TABLE if row.effect is Effect.ORDER or row.effect in COPY_GROUPS)
_BARRIERS = drawable(row for row in TABLE if row.effect in (Effect.BLOCK_BARRIER, Effect.BLOCK_REDUCTION))
_ARRIVALS = drawable(row for row in TABLE if row.effect is Effect.BLOCK_ARRIVAL)
_MATRICES = drawable(row for row in TABLE if row.effect is Effect.LOAD_MATRIX)
_LANE_BARRIERS = drawable(row for row in TABLE if row.effect is Effect.WARP_BARRIER)


def among_lanes(source: Source) -> Statement:
    """Any instruction of a warp, of the lanes that are here together; sometimes of those that pass a guard."""
    lines, guard = ["activemask.b32 %x4;"], ""
    if source.chance(0.2):
        guarding = source.of_class("p")
        lines += [f"mov.pred %q0, {guarding};", "vote.sync.ballot.b32 %x5, %q0, %x4;", "mov.b32 %x4, %x5;"]
        guard = "@%q0 "
    if source.chance(0.08):
        row = source.random.choice(_LANE_BARRIERS)
        return plain(*lines, f"{guard}{row.syntax.partition(' ')[0]} %x4;")
    row = source.random.choice(_WARP)
    opcode = draw_opcode(row, source.random)
    form = form_of(opcode)
    if row.mnemonic == "shfl":
        return plain(*lines, *_shuffle(source, opcode, form.get("mode"), guard))
    operands: list[str] = []
    for slot in row.operands:
        if slot.name == "membermask":
            operands.append("%x4")
        elif slot.paired:
            operands[-1] += f"|{source.of_class('p')}" if row.mnemonic in ALWAYS_PAIRED or source.chance(0.6) else ""
        elif slot.is_destination:
            operands.append(source.register(form, slot))
        else:
            operands.append(source.source(form, slot))
    return plain(*lines, f"{guard}{opcode} {', '.join(operands)};")


def _shuffle(source: Source, opcode: str, mode: str, guard: str) -> list[str]:
    """A shuffle whose result is kept where its lane took part: what others give is undefined."""
    target, given, step = source.word(), source.word(), source.random.randrange(32)
    if mode == "idx":  # the lane is a member: the first one from some place on, or the first of all
        return [
            f"and.b32 %x0, {source.random.choice((source.word(), str(step)))}, 31;", "shl.b32 %x1, 0xFFFFFFFF, %x0;",
            "and.b32 %x1, %x1, %x4;", "setp.ne.u32 %q1, %x1, 0;", "selp.b32 %x1, %x1, %x4, %q1;",
            "brev.b32 %x1, %x1;", "clz.b32 %x1, %x1;",
            f"{guard}{opcode} {target}|{source.of_class('p')}, {given}, %x1, 31, %x4;",
        ]  # fmt: skip
    segment = source.random.choice((0, 0, 16, 24, 28)) << 8
    clamp = segment if mode == "up" else segment | 31
    sources = {"up": "sub.u32 %x0, %x6, {};", "down": "add.u32 %x0, %x6, {};", "bfly": "xor.b32 %x0, %x6, {};"}
    amount = source.random.choice((str(step), "%x7"))
    return [
        "mov.u32 %x6, %laneid;", f"and.b32 %x7, {source.word()}, 31;", sources[mode].format(amount),
        "mov.u32 %x1, 0;", "setp.ne.u32 %q1, %x1, 0;",
        f"{guard}{opcode} %x1|%q1, {given}, {amount}, {clamp}, %x4;",
        "and.b32 %x0, %x0, 31;", "shr.u32 %x0, %x4, %x0;", "and.b32 %x0, %x0, 1;", "setp.ne.u32 %q2, %x0, 0;",
        "not.pred %q3, %q1;", "or.pred %q2, %q2, %q3;", f"selp.b32 {target}, %x1, 77, %q2;",
    ]  # fmt: skip


def hint(source: Source) -> Statement:
    """Any instruction that orders, awaits or hints."""
    row = source.random.choice(_ORDER)
    opcode = draw_opcode(row, source.random)
    operands = [_hinted(source, row, form_of(opcode), slot.name) for slot in row.operands]
    return plain(f"{opcode} {', '.join(operands)};".replace(" ;", ";"))


def _hinted(source: Source, row: Row, form: Form, name: str) -> str:
    if name == "a" and any(slot.is_address for slot in row.operands):
        return "[own]" if form.get("space") == "local" else "[%b1]" if row.mnemonic == "discard" else "[%b0]"
    if name == "size":
        return "128"
    return {"t": source.random.choice((source.word(), "20")), "count": "64", "n": "0"}.get(name, "3")


def among_threads(source: Source, shape: Shape, *, whole: bool) -> Statement:
    """A barrier of the block. `whole`: all threads are here in whole warps; else all that have not ended."""
    if whole and source.chance(0.15):
        return _arrival(source, shape)
    row = source.random.choice(_BARRIERS)
    return plain(_barrier(source, shape, row, whole=whole))


def _barrier(source: Source, shape: Shape, row: Row, *, whole: bool) -> str:
    operands: list[str] = []
    counted = whole and source.chance(0.4)
    for slot in row.operands:
        match slot.name:
            case "d":
                operands.append(source.of_class("p" if "pred" in row.type_slots[0][1] else "r"))
            case "a":
                operands.append(str(source.random.randrange(16)))
            case "b":
                operands += [str(shape.threads)] if counted else []
            case _:
                operands.append(f"{source.random.choice(('', '!'))}{source.of_class('p')}")
    return f"{draw_opcode(row, source.random)} {', '.join(operands)};"


def _arrival(source: Source, shape: Shape) -> Statement:
    """The first warp arrives, the others wait for it."""
    row = source.random.choice(_ARRIVALS)
    number, here, there = source.random.randrange(1, 16), source.label(), source.label()
    return plain(
        "mov.u32 %x0, %warpid;", "setp.ne.u32 %q0, %x0, 0;", f"@%q0 bra {here};",
        f"{draw_opcode(row, source.random)} {number}, {shape.threads};", f"bra {there};",
        f"{here}:", f"bar.sync {number}, {shape.threads};", f"{there}:", "bar.sync 0;",
    )  # fmt: skip


def exchange(source: Source, shape: Shape, *, whole: bool) -> Statement:
    """Threads read what others of their block wrote, between two barriers."""
    lines = [f"st.shared.v2.b32 [%s0+{8 * source.random.randrange(8)}], {{{source.word()}, {source.word()}}};"]
    lines += ["bar.sync 0;", "mov.u32 %x0, tile;"]
    mask, size = (1 << (shape.threads.bit_length() - 1)) - 1, source.random.choice((4, 8, 16))
    lines += [f"and.b32 %x1, {source.random.choice((source.word(), '%t0'))}, {mask};"]
    lines += [f"mad.lo.u32 %x1, %x1, {SLOT_BYTES}, %x0;"]
    offset = 16 * source.random.randrange(SLOT_BYTES // 16)
    match size:
        case 4:
            lines.append(f"{source.guard()}ld.shared.b32 {source.word()}, [%x1+{offset}];")
        case 8:
            lines.append(f"{source.guard()}ld.shared.b64 {source.of_class('d')}, [%x1+{offset}];")
        case _:
            lines.append(f"{source.guard()}ld.shared.v4.b32 {{%r0, %r3, %r1, %r5}}, [%x1+{offset}];")
    if whole:
        row = source.random.choice(_MATRICES)
        while form_of(opcode := draw_opcode(row, source.random)).space is not SHARED:
            pass  # without a space the address would be a generic one
        targets = source.random.sample([f"%r{i}" for i in range(8)], form_of(opcode).elements)
        lines.append(f"{opcode} {{{', '.join(targets)}}}, [%x1+{offset}];")
        lines += among_matrices(source)
    return plain(*lines, "bar.sync 0;")
