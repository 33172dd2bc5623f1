"""Multiplications of matrices as helpers, which work on tiles: elements in memory, as numbers easy to reckon with.

One helper writes the elements of a matrix from the registers of a warp into a tile, one has an arithmetic
(`arithmetic.py`) add the products of two tiles to a third, and one deals the sums out to the lanes. So a matrix that
several multiplications take (`staging.py`) becomes a tile once.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.tensor.fragments import LINES, Fragment, Product
from triptych.gpu.lower.primitives.arranging import turn
from triptych.gpu.lower.primitives.emitter import I64, POINTER, VOID, Emitter, constant, start_function, vector
from triptych.gpu.lower.primitives.values import element_type
from triptych.gpu.lower.tensor.arithmetic import ARITHMETICS, Tile
from triptych.gpu.lower.tensor.elements import LEAST_ALIGNMENT, narrow, number_of, pair_up, part, widen


def multiply_name(product: Product) -> str:
    """The symbol of the helper that adds the products of two tiles to a third."""
    return f"triptych.mma.{product.name}"


def tile_name(fragment: Fragment, *, turned: bool) -> str:
    """The symbol of the helper that makes a tile of registers, `turned` as B's are."""
    return f"triptych.tile.{fragment.name}{'.turned' if turned else ''}"


def registers_name(fragment: Fragment) -> str:
    """The symbol of the helper that makes registers of a tile of sums."""
    return f"triptych.registers.{fragment.name}"


def turn_name(fragment: Fragment, *, to_tiles: bool) -> str:
    """The symbol of the helper that makes tiles of registers in the place of these, or registers of tiles."""
    return f"{tile_name(fragment, turned=False) if to_tiles else registers_name(fragment)}.in_place"


def register_types(fragment: Fragment) -> list[ir.Type]:
    """Of a fragment's registers, each a vector over the lanes."""
    return [vector(element_type(fragment.register))] * fragment.registers


def registers_result(fragment: Fragment) -> ir.Type:
    """A vector for each register, in a structure where there are several."""
    types = register_types(fragment)
    return types[0] if len(types) == 1 else ir.LiteralStructType(types)


def build_multiply(product: Product) -> ir.Module:
    """The module with the helper: `(A, B turned, sums)`, tiles all three."""
    name = multiply_name(product)
    module = ir.Module(name=name)
    e = start_function(module, name, VOID, [POINTER] * 3)
    fragments = (product.a, product.b, product.c)
    a, b, sums = (Tile.at(place, kind) for place, kind in zip(e.function.args, fragments, strict=True))
    ARITHMETICS[product.numerics](e, product, a, b, sums)
    e.b.ret_void()
    return module


def build_tile(fragment: Fragment, turned: bool) -> ir.Module:
    """The module with the helper: `(tile, registers)`; of sums with the one that turns some in their place."""
    name = tile_name(fragment, turned=turned)
    module = ir.Module(name=name)
    e = start_function(module, name, VOID, [POINTER, *register_types(fragment)])
    place, *registers = e.function.args
    target, home = Tile.at(place, fragment), _in_memory(e, fragment, registers)
    if turned:
        by_elements(e, unpack(e, fragment, home), target)
    else:
        unpack(e, fragment, home, target)
    e.b.ret_void()
    if has_place(fragment):
        _build_turn(module, fragment, to_tiles=True)
    return module


def build_registers(fragment: Fragment) -> ir.Module:
    """The module with the helper: `(tile) -> registers`, which writes nothing; and the one that turns some in place."""
    name = registers_name(fragment)
    module = ir.Module(name=name)
    e = start_function(module, name, registers_result(fragment), [POINTER])
    _return_registers(e, fragment, Tile.at(e.function.args[0], fragment))
    if has_place(fragment):
        _build_turn(module, fragment, to_tiles=False)
    return module


def has_place(fragment: Fragment) -> bool:
    """Whether a tile of sums is as large as the registers that hold it."""
    return fragment.block_registers > 1 and fragment.packed == 1 and fragment.copies == 1


def _build_turn(module: ir.Module, fragment: Fragment, *, to_tiles: bool) -> None:
    """turn(place, count): so many tiles, or matrices in registers, one behind the other, become the other in place."""
    e = start_function(module, turn_name(fragment, to_tiles=to_tiles), VOID, [POINTER, I64])
    first, count = e.function.args
    types = register_types(fragment)
    size = WARP_SIZE * fragment.register.bytes
    with e.counted(count) as i:
        place = e.offset(first, e.b.mul(i, constant(size * len(types))))
        places = [e.offset(place, size * index) for index in range(len(types))]
        if to_tiles:
            registers = [e.b.load(p, align=LEAST_ALIGNMENT, typ=t) for p, t in zip(places, types, strict=True)]
            e.intrinsic(tile_name(fragment, turned=False), VOID, [place, *registers])
        else:
            given = e.intrinsic(registers_name(fragment), registers_result(fragment), [place])
            several = len(types) > 1
            for index, p in enumerate(places):
                e.b.store(e.b.extract_value(given, index) if several else given, p, align=LEAST_ALIGNMENT)
    e.b.ret_void()


def _in_memory(e: Emitter, fragment: Fragment, registers: Sequence[ir.Value]) -> ir.Value:
    """A fragment's registers one behind the other; of copies the first."""
    once = registers[: fragment.registers // fragment.copies]
    home = e.variable(ir.ArrayType(once[0].type, len(once)))
    for index, register in enumerate(once):
        e.b.store(register, e.offset(home, WARP_SIZE * fragment.register.bytes * index))
    return home


def unpack(e: Emitter, fragment: Fragment, home: ir.Value, target: Tile | None = None) -> Tile:
    """The numbers of a matrix, block after block as the registers in memory hold them."""
    size, kind = WARP_SIZE * fragment.register.bytes, vector(element_type(fragment.register))
    tile = target or Tile.of(e, fragment)
    with e.counted(constant(fragment.bands * fragment.along)) as block:
        first = e.b.mul(block, constant(size * fragment.block_registers))
        words = [
            e.b.load(e.offset(e.offset(home, first), size * index), align=LEAST_ALIGNMENT, typ=kind)
            for index in range(fragment.block_registers)
        ]
        numbers = widen(e, fragment.element, words[0] if len(words) == 1 else pair_up(e.b, *words))
        e.b.store(numbers, e.offset(tile.place, e.b.mul(block, constant(tile.block_bytes))), align=LEAST_ALIGNMENT)
    return tile


def by_elements(e: Emitter, tile: Tile, target: Tile | None = None) -> Tile:
    """B, whose lines are columns, row after row: eight columns of a row side by side."""
    fragment = tile.fragment
    turned = target or Tile.of(e, fragment)
    with e.counted(constant(fragment.bands)) as band, e.counted(constant(fragment.along)) as along:
        block = e.b.add(e.b.mul(along, constant(fragment.bands)), band)
        source = e.offset(tile.place, e.b.mul(block, constant(tile.block_bytes)))
        block = e.b.add(e.b.mul(band, constant(fragment.along)), along)
        there = e.offset(turned.place, e.b.mul(block, constant(tile.block_bytes)))
        for index, row in enumerate(turn(e.b, [_line_of(e, tile, source, line) for line in range(LINES)])):
            e.b.store(row, e.offset(there, index * LINES * tile.bytes), align=LEAST_ALIGNMENT)
    return turned


def _line_of(e: Emitter, tile: Tile, block: ir.Value, line: int) -> ir.Value:
    place = e.offset(block, line * tile.block_length * tile.bytes)
    return e.b.load(place, align=LEAST_ALIGNMENT, typ=vector(tile.number, tile.block_length))


def pack(e: Emitter, fragment: Fragment, sums: Tile, home: ir.Value) -> None:
    """Rounds the sums to the type of D, as its registers in memory."""
    size = WARP_SIZE * fragment.register.bytes * fragment.block_registers
    with e.counted(constant(fragment.bands * fragment.along)) as block:
        place = e.offset(home, e.b.mul(block, constant(size)))
        for index, register in enumerate(_registers_of(e, fragment, sums, block)):
            e.b.store(register, e.offset(place, WARP_SIZE * fragment.register.bytes * index))


def _registers_of(e: Emitter, fragment: Fragment, sums: Tile, block: ir.Value) -> list[ir.Value]:
    """The registers of a block of D."""
    assert number_of(fragment.element) == sums.number
    place = e.offset(sums.place, e.b.mul(block, constant(sums.block_bytes)))
    numbers = e.b.load(place, align=LEAST_ALIGNMENT, typ=sums.block_type)
    packed = narrow(e, fragment.element, numbers)
    count = fragment.block_registers
    return [packed] if count == 1 else [part(e.b, packed, index, count) for index in range(count)]


def _return_registers(e: Emitter, fragment: Fragment, sums: Tile) -> None:
    """Rounds the sums to the type of D and returns them as its registers."""
    blocks = range(fragment.bands * fragment.along)
    registers = [register for block in blocks for register in _registers_of(e, fragment, sums, constant(block))]
    registers *= fragment.copies
    whole: ir.Value = registers[0]
    if len(registers) > 1:
        whole = ir.Constant(ir.LiteralStructType([register.type for register in registers]), ir.Undefined)
        for index, register in enumerate(registers):
            whole = e.b.insert_value(whole, register, index)
    e.b.ret(whole)
