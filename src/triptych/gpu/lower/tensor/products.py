"""Multiplications of matrices as helpers: the registers of A, B and C of a warp in, those of D out.

A helper writes the elements of each matrix into memory, as numbers that are easy to reckon with, has an arithmetic
(`arithmetic.py`) add products to C there, and deals the sums out to the lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.tensor.fragments import LINES, Fragment, Product
from triptych.gpu.lower.primitives.emitter import Emitter, constant, start_function, vector
from triptych.gpu.lower.primitives.values import element_type
from triptych.gpu.lower.tensor.arithmetic import ARITHMETICS, Tile
from triptych.gpu.lower.tensor.elements import LEAST_ALIGNMENT, narrow, number_of, pair_up, part, widen


def multiply_name(product: Product) -> str:
    """The helper's symbol."""
    return f"triptych.mma.{product.name}"


def _register_types(fragment: Fragment) -> list[ir.Type]:
    return [vector(element_type(fragment.register))] * fragment.registers


def multiply_result(product: Product) -> ir.Type:
    """A vector for each register of D, in a structure where there are several."""
    types = _register_types(product.d)
    return types[0] if len(types) == 1 else ir.LiteralStructType(types)


def build_multiply(product: Product) -> ir.Module:
    """The module with the helper: `(registers of A, B and C) -> registers of D`."""
    name = multiply_name(product)
    module = ir.Module(name=name)
    parts = [product.a, product.b, product.c]
    types = [kind for fragment in parts for kind in _register_types(fragment)]
    e = start_function(module, name, multiply_result(product), types)
    registers = list(e.function.args)
    tiles: list[Tile] = []
    for fragment in parts:
        given, registers = registers[: fragment.registers], registers[fragment.registers :]
        tiles.append(unpack(e, fragment, _in_memory(e, fragment, given)))
    a, b, sums = tiles
    ARITHMETICS[product.numerics](e, product, a, by_elements(e, b), sums)
    _return_registers(e, product.d, sums)
    return module


def _in_memory(e: Emitter, fragment: Fragment, registers: Sequence[ir.Value]) -> ir.Value:
    """A fragment's registers one behind the other; of copies the first."""
    once = registers[: fragment.registers // fragment.copies]
    home = e.variable(ir.ArrayType(once[0].type, len(once)))
    for index, register in enumerate(once):
        e.b.store(register, e.offset(home, WARP_SIZE * fragment.register.bytes * index))
    return home


def unpack(e: Emitter, fragment: Fragment, home: ir.Value) -> Tile:
    """The numbers of a matrix, block after block as the registers in memory hold them."""
    size, kind = WARP_SIZE * fragment.register.bytes, vector(element_type(fragment.register))
    tile = Tile.of(e, fragment)
    with e.counted(constant(fragment.bands * fragment.along)) as block:
        first = e.b.mul(block, constant(size * fragment.block_registers))
        words = [
            e.b.load(e.offset(e.offset(home, first), size * index), align=LEAST_ALIGNMENT, typ=kind)
            for index in range(fragment.block_registers)
        ]
        numbers = widen(e, fragment.element, words[0] if len(words) == 1 else pair_up(e.b, *words))
        e.b.store(numbers, e.offset(tile.place, e.b.mul(block, constant(tile.block_bytes))), align=LEAST_ALIGNMENT)
    return tile


def by_elements(e: Emitter, tile: Tile) -> Tile:
    """B, whose lines are columns, row after row: eight columns of a row side by side."""
    fragment, width = tile.fragment, tile.block_length
    turned = Tile.of(e, fragment)
    kind = vector(tile.number, LINES)
    with e.counted(constant(fragment.bands)) as band, e.counted(constant(fragment.along)) as along:
        block = e.b.add(e.b.mul(along, constant(fragment.bands)), band)
        source = e.offset(tile.place, e.b.mul(block, constant(tile.block_bytes)))
        block = e.b.add(e.b.mul(band, constant(fragment.along)), along)
        target = e.offset(turned.place, e.b.mul(block, constant(tile.block_bytes)))
        with e.counted(constant(width)) as element:
            row: ir.Value = ir.Constant(kind, ir.Undefined)
            start = e.offset(source, e.b.mul(element, constant(tile.bytes)))
            for line in range(LINES):
                one = e.b.load(e.offset(start, line * width * tile.bytes), typ=tile.number)
                row = e.b.insert_element(row, one, constant(line))
            e.b.store(row, e.offset(target, e.b.mul(element, constant(LINES * tile.bytes))))
    return turned


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
