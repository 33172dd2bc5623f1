"""Repeats: what a compiler does once where the author does it again, as Beta 1's does.

Two tiles are equal where the same instructions have written both, in the same order, from the same arrays that nobody
writes or from equal tiles. What writes the later one is left out, and those that read it read the earlier. NKIBench's
counters of Trainium (docs/record_nkibench.py) show it of loads, copies and products; what a product transposes is
transposed each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from triptych.neuron.isa.hardware import Space
from triptych.neuron.isa.loops import effect_of, loop_ends
from triptych.neuron.isa.occupancy import Part, parts_of
from triptych.neuron.isa.row import ROWS, Effect
from triptych.neuron.isa.trace import Instruction, Operand, Region, Tensor

_EACH_TIME = frozenset({"nc_transpose"})
"""What is done again, whatever it is."""


@dataclass(slots=True)
class _Tile:
    """A block of a tensor on the chip, and what happens to it."""

    writers: list[int] = field(default_factory=list[int])
    readers: list[int] = field(default_factory=list[int])
    """Those that do not write it too."""
    comparable: bool = True
    """Whether all that touches it touches only it, as far as it writes, at places that are known before it runs."""
    made_by: list[object] = field(default_factory=list[object])
    """The writers so far, each with what it reads."""
    equals: Part | None = None
    """The first tile that is equal, once all of it is written; its own, where there is none before it."""

    @property
    def settled(self) -> bool:
        """Whether it has its last bytes before the first of them is read."""
        written = self.comparable and bool(self.writers)
        return written and (not self.readers or self.writers[-1] < self.readers[0])


def without_repeats(program: Sequence[Instruction], tensors: Sequence[Tensor]) -> tuple[Instruction, ...] | None:
    """A program that does nothing twice; None where nothing was, or where it has loops, prints or meets others."""
    if loop_ends(program) or any(effect_of(one) is not Effect.COMPUTE for one in program):
        return None
    once = _Repeats(program, tensors).run()
    return once if len(once) < len(program) else None


class _Repeats:
    def __init__(self, program: Sequence[Instruction], tensors: Sequence[Tensor]) -> None:
        self._program = program
        self._tensors = tensors
        self._tiles: dict[Part, _Tile] = {}
        self._written_arrays: set[int] = set()
        for at, instruction in enumerate(program):
            self._note(at, instruction)

    def run(self) -> tuple[Instruction, ...]:
        first: dict[object, Part] = {}
        for at, instruction in enumerate(self._program):
            for part in self._written(instruction):
                tile = self._tiles[part]
                if tile.settled:
                    tile.made_by.append(self._made(instruction, part))
                    if tile.writers[-1] == at:
                        tile.equals = first.setdefault((self._layout(part), *tile.made_by), part)
        dropped = self._dropped()
        return tuple(self._renamed(one) for at, one in enumerate(self._program) if at not in dropped)

    def _note(self, at: int, instruction: Instruction) -> None:
        """Who reads and writes what, and which tiles cannot be compared."""
        written = list(self._written(instruction))
        for part in written:
            self._tiles.setdefault(part, _Tile()).writers.append(at)
        alone = len(written) == 1 and instruction.operation not in _EACH_TIME
        for region in instruction.regions():
            tensor = self._tensors[region.tensor]
            if tensor.space.on_chip:
                parts = parts_of(region, self._tensors)
                alone = alone and len(parts) == 1
                for part in parts:
                    tile = self._tiles.setdefault(part, _Tile())
                    if part not in written:
                        tile.readers.append(at)
                    placed = tensor.address is not None or tensor.alias is not None
                    tile.comparable &= len(parts) == 1 and not placed and region.dynamic is None
            else:
                alone = alone and tensor.space is Space.HBM and region.dynamic is None and not tensor.shared
        for rule in ROWS[instruction.operation].operands:
            operand = instruction.operands.get(rule.name)
            if rule.written and isinstance(operand, Region) and self._tensors[operand.tensor].space is Space.HBM:
                self._written_arrays.add(operand.tensor)
        if not alone:
            for part in written:
                self._tiles[part].comparable = False

    def _written(self, instruction: Instruction) -> Iterator[Part]:
        for rule in ROWS[instruction.operation].operands:
            operand = instruction.operands.get(rule.name)
            if rule.written and isinstance(operand, Region) and self._tensors[operand.tensor].space.on_chip:
                yield from parts_of(operand, self._tensors)

    def _layout(self, part: Part) -> object:
        tensor = self._tensors[part[0]]
        return tensor.space, tensor.dtype, tensor.partitions, tensor.free, tensor.blocks, tensor.zeroed, tensor.start

    def _made(self, instruction: Instruction, target: Part) -> object:
        """An instruction as one that writes an equal tile has it: what it is, and what it reads."""
        operands = tuple((name, self._named(one, target)) for name, one in instruction.operands.items())
        return instruction.operation, repr(instruction.attributes), operands  # 1 is not True, nor 0.0 -0.0

    def _named(self, operand: Operand, target: Part) -> object:
        if not isinstance(operand, Region):
            return repr(operand)
        if not self._tensors[operand.tensor].space.on_chip:
            # An array that is written is never the same twice.
            return operand if operand.tensor not in self._written_arrays else object()
        (part,) = parts_of(operand, self._tensors)
        offset = operand.offset - self._begin(part)
        if part == target:
            return None, offset, operand.pattern
        equals = self._tiles[part].equals
        return (part if equals is None else equals), offset, operand.pattern

    def _begin(self, part: Part) -> int:
        """The offset of a block's first element."""
        tensor = self._tensors[part[0]]
        return part[1] * (tensor.free // tensor.blocks)

    def _dropped(self) -> set[int]:
        """The writers of tiles in SBUF that equal earlier ones, and of those in PSUM that then nobody reads."""
        later = [
            (self._tensors[part[0]].space, tile)
            for part, tile in self._tiles.items()
            if tile.equals is not None and tile.equals != part
        ]
        dropped = {at for space, tile in later if space is Space.SBUF for at in tile.writers}
        unread = [
            at
            for space, tile in later
            if space is Space.PSUM and all(one in dropped for one in tile.readers)
            for at in tile.writers
        ]
        return dropped.union(unread)

    def _renamed(self, instruction: Instruction) -> Instruction:
        """The instruction that reads the earlier of equal tiles."""
        operands = {name: self._earlier(operand) for name, operand in instruction.operands.items()}
        return instruction if operands == instruction.operands else replace(instruction, operands=operands)

    def _earlier(self, operand: Operand) -> Operand:
        if not isinstance(operand, Region) or self._tensors[operand.tensor].space is not Space.SBUF:
            return operand
        part = parts_of(operand, self._tensors)[0]
        equals = self._tiles[part].equals
        if equals is None or equals == part:
            return operand
        return replace(operand, tensor=equals[0], offset=operand.offset + self._begin(equals) - self._begin(part))
