"""Sums of matrices that live across the blocks of the converged form as tiles, where its parted lanes have registers.

While a warp is together, the slots of such registers in its frame hold the tile. The masked form finds them there as
registers: where lanes part they are turned, and back where the warp is whole again (`Warp.has_tiles`).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import groupby

from llvmlite import ir

from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.isa.effects import Effect
from triptych.gpu.lower.analysis.find_tile_homes import TileHome, find_home
from triptych.gpu.lower.kernel_code.body import KernelForm
from triptych.gpu.lower.primitives.emitter import I1, VOID, constant, vector
from triptych.gpu.lower.primitives.machine import Value, element_type
from triptych.gpu.lower.records import Warp
from triptych.gpu.lower.tensor.arithmetic import Tile
from triptych.gpu.lower.tensor.products import turn_name


class TileHomes:
    """The tiles of a form, which calls `forget` where a block begins and `keep` where it ends."""

    def __init__(self, form: KernelForm) -> None:
        """Emits nothing."""
        self.form, self.e, self.tiles = form, form.e, form.m.tiles
        self.homes = form.analysis.tile_homes
        self.names = {name: home for home in self.homes for name in home.registers}
        """By register."""
        self._entered: dict[TileHome, tuple[Tile, list[ir.Value]]] = {}

    def forget(self) -> None:
        """Before code that does not run behind all that was emitted."""
        self._entered.clear()

    def read(self, name: str) -> Value:
        """A register as its tile holds it."""
        home = self.names[name]
        _, registers = self._enter(home)
        lanes = registers[home.registers.index(name)]
        kind = vector(self.form.lane_type(name))
        return Value(lanes if lanes.type == kind else self.e.b.bitcast(lanes, kind), False)

    def aim(self, instruction: BoundInstruction) -> None:
        """Has the sums of a multiplication made where they will live."""
        if instruction.effect is Effect.MULTIPLY:
            home = find_home(instruction, instruction.destinations)
            if home in self.homes:
                self.tiles.target = self._enter(home)[0]

    def _enter(self, home: TileHome) -> tuple[Tile, list[ir.Value]]:
        if home not in self._entered:
            tile = self._tile(home)
            self._entered[home] = tile, self.tiles.enter(tile)
        return self._entered[home]

    def _tile(self, home: TileHome) -> Tile:
        return Tile.at(self.form.frame_place(home.registers[0]), home.fragment)

    # Where blocks end -------------------------------------------------------------------------------------------

    def keep(self, written: Mapping[str, Value], wanted: Set[str]) -> None:
        """What the block wrote, for blocks behind it: `wanted` are registers that live there."""
        plans: dict[TileHome, tuple[list[ir.Value], Tile | None]] = {}
        for home in self.homes:
            if wanted.isdisjoint(home.registers):
                continue
            known = self._entered.get(home)
            changed = known is not None and self.tiles.is_changed(known[0])
            if changed or not written.keys().isdisjoint(home.registers):
                values = (written.get(name) or self.form.read_register(name) for name in home.registers)
                registers = [self._lanes(home, value) for value in values]
                found = self.tiles.find(home.fragment, registers)
                if found is None or self._entered.get(home, (None,))[0] != found:
                    plans[home] = registers, found
        overwritten = {self._entered[home][0] for home in plans if home in self._entered}
        for home, (registers, found) in plans.items():
            self._fill(home, registers, None if found in overwritten else found)

    def _lanes(self, home: TileHome, value: Value) -> ir.Value:
        lanes, kind = self.form.m.lanes_of(value), vector(element_type(home.fragment.register))
        return lanes if lanes.type == kind else self.e.b.bitcast(lanes, kind)

    def _fill(self, home: TileHome, registers: list[ir.Value], source: Tile | None) -> None:
        tile = self._tile(home)
        if source is not None:
            copied = [tile.place, source.place, constant(tile.size), ir.Constant(I1, 0)]
            self.e.intrinsic("llvm.memcpy.p0.p0.i64", VOID, copied)
        else:
            self.tiles.write(tile, registers)

    def clear(self, wanted: Set[str]) -> None:
        """Zeros in what is read before it is written."""
        for home in self.homes:
            if not wanted.isdisjoint(home.registers):
                tile = self._tile(home)
                self.e.clear(tile.place, tile.size)

    # Where lanes part and meet ----------------------------------------------------------------------------------

    def turn_to_registers(self) -> None:
        """Before parted lanes run."""
        if self.homes:
            self._turn(to_tiles=False)

    def enter(self) -> None:
        """Where the converged form begins: after parted lanes have run there are registers."""
        if self.homes:
            has_tiles = self.e.load_field(Warp, self.form.warp, "has_tiles")
            with self.e.when(self.e.b.icmp_unsigned("==", has_tiles, constant(0)), likely=False):
                self._turn(to_tiles=True)

    def _turn(self, *, to_tiles: bool) -> None:
        """All of them, in their places."""
        self.e.b.store(constant(int(to_tiles)), self.e.field(Warp, self.form.warp, "has_tiles"))
        for fragment, homes in groupby(self.homes, lambda home: home.fragment):
            first, *others = homes
            place = self.form.frame_place(first.registers[0])
            self.e.intrinsic(turn_name(fragment, to_tiles=to_tiles), VOID, [place, constant(1 + len(others))])
