"""Unrolled loops of Beta 1: which instruction came from which iteration, and that those of `affine_range` are apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from triptych.languages.nki.tracing.dependences import Loop, Path, check_independent
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.neuron.isa import Instruction, Tensor

if TYPE_CHECKING:
    from triptych.languages.nki.tracing.tracer import Tracer


class LoopIndex(int):
    """An index of a loop, a whole number that knows which loop it belongs to."""

    loop: int

    def __new__(cls, value: int, loop: int) -> LoopIndex:
        """The index `value` of that loop."""
        made = super().__new__(cls, value)
        made.loop = loop
        return made


@dataclass(slots=True, eq=False)
class Reduction:
    """What `nl.loop_reduce` has reduced so far; None before the first iteration."""

    tile: NkiTensor | None = None


@dataclass(slots=True)
class Loops:
    """The loops that are being run, and those that each instruction of the programs is in."""

    opened: Path = ()
    _loops: dict[int, Loop] = field(default_factory=dict[int, Loop])
    _paths: dict[int, list[Path]] = field(default_factory=lambda: defaultdict[int, list[Path]](list))
    _exempt: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    _reductions: dict[object, Reduction] = field(default_factory=dict[object, Reduction])
    reduced: set[int] = field(default_factory=set[int])
    """The tensors that are tiles of `nl.loop_reduce`."""

    def record(self, program: int) -> None:
        """An instruction of a program was recorded."""
        self._paths[program].append(self.opened)

    def exempt(self, program: int, instructions: Iterable[int]) -> None:
        """Instructions that accumulate: their order means nothing."""
        self._exempt.update((program, index) for index in instructions)

    def enter(self, independent: bool, first_tensor: int) -> int:
        """A loop begins: its number."""
        number = len(self._loops)
        self._loops[number] = Loop(independent, first_tensor)
        return number

    def reduction(self, call_path: object, reduced: frozenset[int]) -> Reduction:
        """What the call of `nl.loop_reduce` that runs has reduced, in this iteration of the other loops."""
        outer = tuple(one for one in self.opened if one[0] not in reduced)
        return self._reductions.setdefault((call_path, outer), Reduction())

    def check(self, program: int, instructions: Sequence[Instruction], tensors: Sequence[Tensor]) -> None:
        """Refuse a program in which an iteration of an `affine_range` needs what another one wrote.

        Raises:
            NkiError: at the line that writes or reads it.
        """
        if any(one.independent for one in self._loops.values()):
            exempt = frozenset(at for one, at in self._exempt if one == program)
            check_independent(instructions, self._paths[program], exempt, self._loops, tensors)


class Unrolled:
    """The indices of a loop, one after the other; of an `independent` one the iterations must not need each other."""

    def __init__(self, tracer: Tracer, bounds: range, independent: bool) -> None:
        """A loop over `bounds`."""
        self._tracer = tracer
        self._bounds = bounds
        self._independent = independent

    def __len__(self) -> int:
        """How many iterations it has."""
        return len(self._bounds)

    def __getitem__(self, key: int) -> int:
        """One of the indices."""
        return self._bounds[key]

    def __iter__(self) -> Iterator[int]:
        """The indices, which know their loop."""
        loops = self._tracer.loops
        outer = loops.opened
        loop = loops.enter(self._independent and len(self._bounds) > 1, len(self._tracer.tensors))
        try:
            for at, value in enumerate(self._bounds):
                loops.opened = (*outer, (loop, at))
                yield LoopIndex(value, loop)
        finally:
            loops.opened = outer
