"""Spilling: what a compiler that allocates SBUF does where tiles do not fit, as Beta 1's does.

Where a tile needs room, another goes, one that is used again late and costs little to move: its bytes are saved to HBM,
unless they lie there already, and brought back before it is used again. A tile that was loaded as it lies in an array
that the kernel only reads, or was filled with a number, is loaded or filled again instead.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.isa.loops import loop_ends
from triptych.neuron.isa.occupancy import STRIPS, Part, parts_of, strip_bytes
from triptych.neuron.isa.row import ROWS
from triptych.neuron.isa.trace import Instruction, Operand, Region, Tensor


@dataclass(frozen=True, slots=True)
class Fitted:
    """A program whose tiles fit: its instructions, the tensors with those that were added, and what was added."""

    program: tuple[Instruction, ...]
    tensors: tuple[Tensor, ...]
    added: frozenset[int]
    """The indices of the transfers that save tiles and bring them back."""


@dataclass(slots=True)
class _Tile:
    """A block of a tensor, or all of a tensor whose blocks are used together."""

    tensor: int
    offset: int
    """Of its first element in each partition."""
    free: int
    bytes: int
    room: int
    """What it takes of SBUF: `occupancy.strip_bytes` of its bytes."""
    uses: list[int] = field(default_factory=list[int])
    pinned: bool = False
    """Whether it must stay: it was placed, or is viewed in another dtype."""
    held_in: int | None = None
    """The tensor that holds it since it came back; None for its own."""
    saved: int | None = None
    """The tensor in HBM that holds its bytes; None where they have changed since."""
    load: Instruction | None = None
    """What loads or fills it again, where nothing has changed it since."""
    written: bool = False
    put_off: bool = False
    """Whether its load is still to come."""

    def next_use(self, at: int) -> int:
        return self.uses[bisect_right(self.uses, at)]


def spilled(program: Sequence[Instruction], tensors: Sequence[Tensor], capacity: int) -> Fitted | None:
    """A program with the transfers that let its tiles fit `capacity` bytes of each partition of SBUF.

    None where that cannot be: one instruction needs more, the author placed tiles, or the program has loops.
    """
    if loop_ends(program) or any(one.space is Space.SBUF and one.address is not None for one in tensors):
        return None
    return _Spilling(program, tensors, capacity).run()


class _Spilling:
    def __init__(self, program: Sequence[Instruction], tensors: Sequence[Tensor], capacity: int) -> None:
        self._program = program
        self._tensors = list(tensors)
        self._room = STRIPS * capacity
        self._tiles: dict[Part, _Tile] = {}
        self._resident: dict[int, _Tile] = {}
        self._gone: set[int] = set()
        self._made: list[Instruction] = []
        self._added: set[int] = set()
        self._joined = _used_together(program, tensors)
        self._constant = _never_written(program, tensors)
        self._used = [self._tiles_of(one, at) for at, one in enumerate(program)]

    def run(self) -> Fitted | None:
        for at, instruction in enumerate(self._program):
            used = self._used[at]
            missing = [one for one in used if id(one) not in self._resident]
            if self._deferred(instruction, missing):
                continue
            if not self._make_room(at, instruction, used, sum(one.room for one in missing)):
                return None
            for tile in missing:
                self._bring(tile, instruction)
            self._made.append(self._moved(instruction, used) if self._gone else instruction)
            self._note_writes(instruction)
            for tile in used:
                if tile.uses[-1] == at:
                    del self._resident[id(tile)]
                    self._room += tile.room
        return Fitted(tuple(self._made), tuple(self._tensors), frozenset(self._added))

    def _tiles_of(self, instruction: Instruction, at: int) -> list[_Tile]:
        found: dict[int, _Tile] = {}
        for region in instruction.regions():
            for tile in self._of(region):
                found[id(tile)] = tile
        for tile in found.values():
            tile.uses.append(at)
        return list(found.values())

    def _of(self, region: Region) -> Iterator[_Tile]:
        tensor = self._tensors[region.tensor]
        if tensor.space is not Space.SBUF:
            return
        for root, block in parts_of(region, self._tensors):
            key = (root, 0 if root in self._joined else block)
            tile = self._tiles.get(key)
            if tile is None:
                owner = self._tensors[root]
                free = owner.free if root in self._joined else owner.free // owner.blocks
                size = free * owner.dtype.bytes
                tile = _Tile(root, key[1] * free, free, size, strip_bytes(owner, size))
                self._tiles[key] = tile
            tile.pinned |= tensor.alias is not None or region.dynamic is not None
            yield tile

    def _deferred(self, instruction: Instruction, missing: Sequence[_Tile]) -> bool:
        """Whether it loads or fills a tile for which there is no room, so that it does where that is used first."""
        target = instruction.operands.get("dst")
        if len(missing) != 1 or missing[0].room <= self._room or not isinstance(target, Region):
            return False
        tile = missing[0]
        if tile.pinned or len(tile.uses) < 2 or not self._loads(instruction, tile, target):
            return False
        tile.load, tile.written, tile.put_off = instruction, True, True
        self._gone.add(id(tile))
        return True

    def _make_room(self, at: int, instruction: Instruction, used: Sequence[_Tile], wanted: int) -> bool:
        """Whether there is so much room, once tiles that are used again late have gone."""
        while self._room < wanted:
            others = [one for one in self._resident.values() if not one.pinned and all(one is not it for it in used)]
            if not others:
                return False
            victim = max(others, key=lambda one: (one.next_use(at) - at) / self._moved_bytes(one) * one.room)
            if victim.load is None and victim.saved is None:
                self._save(victim, instruction)
            del self._resident[id(victim)]
            self._gone.add(id(victim))
            self._room += victim.room
        return True

    def _moved_bytes(self, tile: _Tile) -> int:
        """What it costs to do without a tile until it is used again."""
        ways = 1 if tile.load is not None or tile.saved is not None else 2
        return ways * tile.bytes * self._tensors[tile.tensor].partitions

    def _save(self, tile: _Tile, instruction: Instruction) -> None:
        owner = self._tensors[tile.tensor]
        shape = (owner.partitions, tile.free)
        self._tensors.append(Tensor(f"spilled {owner.name}", Space.HBM, owner.dtype, 1, prod(shape), shape))
        tile.saved = len(self._tensors) - 1
        self._transfer(self._region(tile), _in_hbm(tile.saved, owner, tile), instruction)

    def _transfer(self, source: Region, target: Region, instruction: Instruction) -> None:
        attributes = {name: rule.default for name, rule in ROWS["dma_copy"].attributes.items()}
        operands = {"dst": target, "src": source}
        self._added.add(len(self._made))
        self._made.append(Instruction("dma_copy", Engine.DMA, operands, attributes, instruction.where))

    def _bring(self, tile: _Tile, instruction: Instruction) -> None:
        """Give a tile its room; one that had gone gets a tensor of its own there, and its bytes."""
        self._resident[id(tile)] = tile
        self._room -= tile.room
        if id(tile) not in self._gone:
            return
        owner = self._tensors[tile.tensor]
        shape = (owner.partitions, tile.free)
        self._tensors.append(Tensor(owner.name, Space.SBUF, owner.dtype, owner.partitions, tile.free, shape))
        tile.held_in = len(self._tensors) - 1
        if tile.load is not None:
            loaded = replace(tile.load, operands={**tile.load.operands, "dst": self._region(tile)})
            if not tile.put_off:
                self._added.add(len(self._made))
            self._made.append(loaded)
            tile.put_off = False
        elif tile.saved is not None:
            self._transfer(_in_hbm(tile.saved, owner, tile), self._region(tile), instruction)

    def _region(self, tile: _Tile) -> Region:
        """All of a tile, where it is now."""
        held = tile.tensor if tile.held_in is None else tile.held_in
        holder, offset = self._tensors[held], tile.offset if tile.held_in is None else 0
        return Region(held, offset, ((holder.free, holder.partitions), (1, tile.free)))

    def _moved(self, instruction: Instruction, used: Sequence[_Tile]) -> Instruction:
        """The instruction with tiles named where they are now."""
        if all(one.held_in is None for one in used):
            return instruction
        operands = {name: self._moved_operand(operand) for name, operand in instruction.operands.items()}
        return replace(instruction, operands=operands)

    def _moved_operand(self, operand: Operand) -> Operand:
        if not isinstance(operand, Region):
            return operand
        if operand.dynamic is not None:
            index = self._moved_operand(operand.dynamic.index)
            assert isinstance(index, Region)
            operand = replace(operand, dynamic=replace(operand.dynamic, index=index))
        tile = next(self._of(operand), None)
        if tile is None or tile.held_in is None:
            return operand
        free = self._tensors[tile.tensor].free
        row, column = divmod(operand.offset, free)
        (step, rows), *inner = operand.pattern
        pattern = ((step // free * tile.free, rows), *inner)
        return replace(operand, tensor=tile.held_in, offset=row * tile.free + column - tile.offset, pattern=pattern)

    def _note_writes(self, instruction: Instruction) -> None:
        """What an instruction writes is no longer what lies in HBM."""
        for rule in ROWS[instruction.operation].operands:
            operand = instruction.operands.get(rule.name)
            if not rule.written or not isinstance(operand, Region):
                continue
            for tile in self._of(operand):
                tile.load = instruction if self._loads(instruction, tile, operand) else None
                tile.saved, tile.written = None, True

    def _loads(self, instruction: Instruction, tile: _Tile, target: Region) -> bool:
        """Whether it is the first to write a tile, all of it, with a number or from what nobody writes."""
        if tile.written or target.size != tile.free * self._tensors[tile.tensor].partitions:
            return False
        source = instruction.operands.get("src")
        known = isinstance(source, Region) and source.dynamic is None and source.tensor in self._constant
        return instruction.operation == "memset" or (instruction.operation == "dma_copy" and known)


def _in_hbm(tensor: int, owner: Tensor, tile: _Tile) -> Region:
    return Region(tensor, 0, ((tile.free, owner.partitions), (1, tile.free)))


def _used_together(program: Sequence[Instruction], tensors: Sequence[Tensor]) -> frozenset[int]:
    """The tensors of which a region lies in several blocks, or which are viewed in another dtype."""
    found: set[int] = set()
    for instruction in program:
        for region in instruction.regions():
            if tensors[region.tensor].blocks > 1 or tensors[region.tensor].alias is not None:
                parts = parts_of(region, tensors)
                if len(parts) > 1 or tensors[region.tensor].alias is not None:
                    found.add(parts[0][0])
    return frozenset(found)


def _never_written(program: Sequence[Instruction], tensors: Sequence[Tensor]) -> frozenset[int]:
    """The arrays in HBM that the program only reads."""
    written = {
        operand.tensor
        for instruction in program
        for rule in ROWS[instruction.operation].operands
        if rule.written and isinstance(operand := instruction.operands.get(rule.name), Region)
    }
    in_hbm = (at for at, one in enumerate(tensors) if one.space is Space.HBM and not one.shared)
    return frozenset(at for at in in_hbm if at not in written)
