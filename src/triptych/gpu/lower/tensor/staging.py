"""Tiles that stay in memory while the registers of which they were made may be multiplied again."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Sequence

from llvmlite import ir

from triptych.gpu.isa.tensor.fragments import Fragment, Product
from triptych.gpu.lower.primitives.emitter import VOID, Emitter
from triptych.gpu.lower.tensor.arithmetic import Tile
from triptych.gpu.lower.tensor.products import multiply_name, registers_name, registers_result, tile_name

MOST_TILES = 96
"""Kept at a time: what a warp multiplies between two barriers, as a rule."""
_ROUNDED = ("f16",)
"""Elements of sums that a register holds less of than a tile."""

_Key = tuple[Fragment, bool, tuple[ir.Value, ...]]
"""A fragment, whether its tile is turned, and the values of its registers."""


class StagedTiles:
    """The tiles of the block that is being emitted, by the values of the registers that they hold.

    A multiplication changes the tile of its sums in place. The registers of D are made of it behind every
    multiplication, and left out by LLVM where only the next multiplication takes them.
    """

    def __init__(self, e: Emitter) -> None:
        """None yet."""
        self.e = e
        self._tiles: OrderedDict[_Key, Tile] = OrderedDict()
        self._spare: defaultdict[Fragment, list[Tile]] = defaultdict(list)
        self._changed: dict[Tile, bool] = {}
        """Of tiles that live where others find them: whether a multiplication has changed them in the block."""
        self.target: Tile | None = None
        """Such a tile, where the sums of the next multiplication are wanted."""

    def forget(self) -> None:
        """Before code that does not run behind all that was emitted."""
        while self._tiles:
            self._release(self._tiles.popitem()[1])
        self._changed.clear()

    def enter(self, tile: Tile) -> list[ir.Value]:
        """Takes a tile that lives in the caller's memory, and is changed there; gives the registers that it holds."""
        self._changed[tile] = False
        found = self._registers(tile.fragment, tile)
        self._keep(_key(tile.fragment, found), tile)
        return found

    def is_changed(self, tile: Tile) -> bool:
        """Whether such a tile holds something else now."""
        return self._changed[tile]

    def find(self, fragment: Fragment, registers: Sequence[ir.Value]) -> Tile | None:
        """The tile that holds these registers, if there is one."""
        return self._tiles.get(_key(fragment, registers))

    def write(self, tile: Tile, registers: Sequence[ir.Value]) -> None:
        """Makes a tile of registers, in the caller's memory."""
        self.e.intrinsic(tile_name(tile.fragment, turned=False), VOID, [tile.place, *registers])

    def multiply(self, product: Product, registers: Sequence[ir.Value]) -> list[ir.Value]:
        """The registers of D from those of A, B and C."""
        ends = (product.a.registers, product.a.registers + product.b.registers)
        a = self._tile(product.a, registers[: ends[0]])
        b = self._tile(product.b, registers[ends[0] : ends[1]], turned=True)
        given = _key(product.c, registers[ends[1] :])
        target, self.target = self.target, None
        if target is not None and given not in self._tiles:
            self._move_in(target, given, registers[ends[1] :])
        sums = self._tile(product.c, registers[ends[1] :])
        del self._tiles[given]
        if sums in self._changed:
            self._changed[sums] = True
        self.e.intrinsic(multiply_name(product), VOID, [a.place, b.place, sums.place])
        found = self._registers(product.d, sums)
        if product.d == product.c and product.d.element.name not in _ROUNDED:
            self._keep(_key(product.d, found), sums)
        else:
            self._release(sums)
        return found

    def _move_in(self, target: Tile, key: _Key, registers: Sequence[ir.Value]) -> None:
        """Makes a tile where another one lives, whose registers are known."""
        for known in [known for known, tile in self._tiles.items() if tile == target]:
            del self._tiles[known]
        self._changed[target] = True
        self.write(target, registers)
        self._keep(key, target)

    def _tile(self, fragment: Fragment, registers: Sequence[ir.Value], *, turned: bool = False) -> Tile:
        key = _key(fragment, registers, turned=turned)
        tile = self._tiles.get(key)
        if tile is None:
            spare = self._spare[fragment]
            tile = spare.pop() if spare else Tile.of(self.e, fragment)
            self.e.intrinsic(tile_name(fragment, turned=turned), VOID, [tile.place, *registers])
            self._keep(key, tile)
        self._tiles.move_to_end(key)
        return tile

    def _keep(self, key: _Key, tile: Tile) -> None:
        self._tiles[key] = tile
        if len(self._tiles) > MOST_TILES:
            self._release(self._tiles.popitem(last=False)[1])

    def _release(self, tile: Tile) -> None:
        if tile not in self._changed:
            self._spare[tile.fragment].append(tile)

    def _registers(self, fragment: Fragment, sums: Tile) -> list[ir.Value]:
        given = self.e.pure(registers_name(fragment), registers_result(fragment), [sums.place])
        if fragment.registers == 1:
            return [given]
        return [self.e.b.extract_value(given, index) for index in range(fragment.registers)]


def _key(fragment: Fragment, registers: Sequence[ir.Value], *, turned: bool = False) -> _Key:
    return fragment, turned, tuple(map(_origin, registers))


def _origin(value: ir.Value) -> ir.Value:
    """What the bits of a value come from."""
    while isinstance(value, ir.CastInstr) and value.opname == "bitcast":
        (value,) = value.operands
    return value
