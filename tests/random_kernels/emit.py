"""A seed -> a random kernel -> its text, each instruction with a source line of its own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from accesses import Accesses
from control import Author, Context
from edge_values import EDGES
from exchanges import among_threads, exchange
from grammar import Body, RandomKernel, Routine, Statement, plain
from numpy.typing import NDArray
from operands import Source
from places import BLOB_BYTES, CELL_BYTES, COMMON_BYTES, SLOT_BYTES, SMALL_BYTES, TABLE_BYTES, Shape
from register_classes import declarations
from routines import STORED_BYTES, Functions, fill_local, initial_values, store_all

HEADER = '.version 8.0\n.target sm_80\n.address_size 64\n.file 1 "random.ptx"\n'
BLOCKS = ((32, 1, 1), (64, 1, 1), (64, 1, 1), (64, 1, 1), (40, 1, 1), (9, 5, 1), (33, 2, 1), (16, 4, 1), (7, 1, 1))
INPUT_BYTES = 256
OUT_BYTES = STORED_BYTES + SLOT_BYTES
"""What each thread leaves in the output: its registers and its local array."""
POISON = 0xA5
_PARAMETERS = (
    ".param .u64 inputs, .param .u64 table, .param .u64 scratch, .param .u64 cells, .param .u64 common,"
    f" .param .u64 out, .param .u64 dump, .param .align 16 .b8 blob[{BLOB_BYTES}]"
)


def random_kernel(seed: int, *, stretches: int = 5) -> RandomKernel:
    """The kernel of a seed; its body has at most so many stretches, 2 or more, of up to 7 statements."""
    source = Source(random.Random(seed))
    block, blocks = source.random.choice(BLOCKS), source.random.choice((1, 2, 2, 4))
    shape = Shape(-(-(block[0] * block[1] * block[2]) // 32) * 32, blocks)
    accesses = Accesses(source, shape)
    functions = Functions(source, shape, accesses, [], [])
    functions.write(source.random.choice((0, 0, 0, 1, 2, 3)))
    author = Author(source, shape, accesses, tuple(functions.calls))
    leave = source.random.choice(("", "", "exit", "ret", "bra END"))
    whole = not leave and block[0] * block[1] * block[2] % 32 == 0
    body = _body(author, stretches, Context(3, together=not leave.startswith("bra"), leave=leave, whole=whole))
    own = f".local .align 32 .b8 own[{SLOT_BYTES}];"
    kernel = Routine(
        f".visible .entry k({_PARAMETERS})", f"{declarations()} {own}", _start(source, shape), body, _end(shape)
    )
    variables = (
        f".shared .align 128 .b8 tile[{shape.tile_bytes}];\n"
        f".const .align 32 .b8 constants[{SMALL_BYTES}] = {{{_bytes(source, SMALL_BYTES)}}};\n"
        f".global .align 32 .b8 module[{SMALL_BYTES}] = {{{_bytes(source, 32)}}};\n"
    )
    routines = (*functions.routines, kernel)
    return RandomKernel(seed, variables, routines, (blocks, 1, 1), block)


def _bytes(source: Source, count: int) -> str:
    return ", ".join(str(source.random.randrange(256)) for _ in range(count))


def _body(author: Author, most: int, context: Context) -> Body:
    """Stretches of statements; between them all living lanes are together again."""
    statements: list[Statement] = []
    for _ in range(author.source.random.randrange(2, most + 1)):
        statements += author.body(context, 7)
        if context.together and author.source.chance(0.4):
            write = author.source.random.choice((among_threads, exchange))
            statements.append(write(author.source, author.shape, whole=context.whole))
    if author.source.chance(0.1):
        statements.append(plain("setp.ne.u32 %q0, %r0, %r0;", "@%q0 trap;"))
    return tuple(statements)


def _start(source: Source, shape: Shape) -> tuple[str, ...]:
    lines = [*shape.lines("table", "scratch", "cells", "common")]
    lines += ["ld.param.u64 %y3, [inputs];", f"mad.wide.u32 %y3, %t1, {INPUT_BYTES}, %y3;"]
    lines += initial_values(source, (), "%y3") + fill_local()
    lines += [
        "mov.u32 %x1, %ntid.x;", "mov.u32 %x2, %ntid.y;", "mul.lo.u32 %t3, %x1, %x2;", "mov.u32 %x1, tile;",
        "mad.lo.u32 %x1, %t0, 16, %x1;", "mov.u32 %x2, %t0;", "mov.u32 %x3, 0;", "shl.b32 %x4, %t3, 4;",
        "FILL:", f"setp.ge.u32 %q0, %x2, {shape.common_at // 16};", "selp.b32 %x5, 0, %r0, %q0;",
        "st.shared.v4.b32 [%x1], {%x5, %x3, %x3, %x5};",
        "add.u32 %x1, %x1, %x4;", "add.u32 %x2, %x2, %t3;", f"setp.lt.u32 %q0, %x2, {shape.tile_bytes // 16};",
        "@%q0 bra FILL;", "bar.sync 0;",
    ]  # fmt: skip
    return tuple(lines)


def _end(shape: Shape) -> tuple[str, ...]:
    lines = ["END:", "bar.sync 0;", "ld.param.u64 %y3, [out];", f"mad.wide.u32 %y3, %t1, {OUT_BYTES}, %y3;"]
    stores, place = store_all("%y3")
    assert place + SLOT_BYTES == OUT_BYTES
    lines += stores
    for offset in range(0, SLOT_BYTES, 16):
        held = "{%x0, %x1, %x2, %x3}"
        lines += [f"ld.local.v4.b32 {held}, [own+{offset}];", f"st.global.v4.b32 [%y3+{place + offset}], {held};"]
    lines += [
        "ld.param.u64 %y0, [dump];", "mov.u32 %x0, %ctaid.x;", f"mad.wide.u32 %y0, %x0, {shape.tile_bytes}, %y0;",
        "mad.wide.u32 %y0, %t0, 16, %y0;", "mov.u32 %x1, tile;", "mad.lo.u32 %x1, %t0, 16, %x1;",
        "mov.u32 %x2, %t0;", "mul.wide.u32 %y1, %t3, 16;", "cvt.u32.u64 %x3, %y1;",
        "DUMP:", f"setp.ge.u32 %q0, %x2, {shape.tile_bytes // 16};", "@%q0 bra DUMPED;",
        "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%x1];", "st.global.v4.b32 [%y0], {%r0, %r1, %r2, %r3};",
        "add.u32 %x1, %x1, %x3;", "add.u64 %y0, %y0, %y1;", "add.u32 %x2, %x2, %t3;", "bra DUMP;", "DUMPED:", "ret;",
    ]  # fmt: skip
    return tuple(lines)


# Text ---------------------------------------------------------------------------------------------------------------


def text_of(kernel: RandomKernel) -> str:
    """The PTX of a kernel."""
    return "\n".join(_lines(kernel))


def _lines(kernel: RandomKernel) -> Iterator[str]:
    yield HEADER + kernel.variables
    number = 0
    for routine in kernel.routines:
        yield f"{routine.head}\n{{\n{routine.declarations}"
        body = (line for statement in routine.body for line in statement.lines())
        for line in (*routine.start, *body, *routine.end):
            if not line.endswith(":") and not line.startswith((".", "{", "}")) and ": ." not in line:
                number += 1
                yield f".loc 1 {number} 0"
            yield line
        yield "}"


# Launch -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Given:
    """What a kernel is launched with: arrays in the order of the parameters, then the bytes of the structure."""

    arrays: tuple[NDArray[np.uint8], ...]
    blob: bytes


def given_to(kernel: RandomKernel) -> Given:
    """Inputs of the seed: edge values and random bits; outputs are poisoned."""
    noise, picks = np.random.default_rng(kernel.seed), random.Random(kernel.seed)
    x, y, z = kernel.block
    shape = Shape(-(-(x * y * z) // 32) * 32, kernel.grid[0])
    out = np.full(OUT_BYTES * shape.total, POISON, np.uint8)
    dump = np.full(shape.tile_bytes * shape.blocks, POISON, np.uint8)
    arrays = (
        _words(picks, INPUT_BYTES * shape.total), _words(picks, TABLE_BYTES), _words(picks, shape.scratch_bytes),
        _words(picks, CELL_BYTES * shape.total), np.zeros(COMMON_BYTES, np.uint8), out, dump,
    )  # fmt: skip
    return Given(arrays, noise.bytes(BLOB_BYTES))


_KINDS = ("u32", "u64", "f32", "f64", "f16x2", "bf16x2", "s16x2")


def _words(picks: random.Random, count: int) -> NDArray[np.uint8]:
    """So many bytes: values at which instructions go wrong, small numbers and random bits."""
    data = bytearray()
    while len(data) < count:
        kind = picks.random()
        if kind < 0.35:
            name = picks.choice(_KINDS)
            data += picks.choice(EDGES[name]).to_bytes(8 if name.endswith("64") else 4, "little")
        elif kind < 0.65:
            data += picks.randrange(64).to_bytes(picks.choice((4, 8)), "little")
        else:
            data += picks.getrandbits(32).to_bytes(4, "little")
    return np.frombuffer(bytes(data[:count]), np.uint8).copy()
