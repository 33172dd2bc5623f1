"""Unrolled loops of Beta 1: which instruction came from which iteration, and that those of `affine_range` are apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from triptych.languages.nki.tracing.dependences import Loop, Path, check_independent
from triptych.languages.nki.tracing.indexing import LoopIndex
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.neuron.isa import Instruction, Tensor

if TYPE_CHECKING:
    from triptych.languages.nki.tracing.tracer import Tracer


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
    _counts: dict[object, int] = field(default_factory=lambda: defaultdict[object, int](int))
    """How many loops were entered, or one call was run, in an iteration."""
    _ordinals: dict[int, int] = field(default_factory=dict[int, int])
    """The place of each loop among those of the iteration that it was entered in."""
    reduced: set[int] = field(default_factory=set[int])
    """The tensors that are tiles of `nl.loop_reduce`."""

    def paths_of(self, program: int) -> list[Path]:
        """The loops that each instruction of a program is in, which whoever records one says: `opened`."""
        return self._paths[program]

    def exempt(self, program: int, instructions: Iterable[int]) -> None:
        """Instructions that accumulate: their order means nothing."""
        self._exempt.update((program, index) for index in instructions)

    def enter(self, independent: bool, first_tensor: int) -> int:
        """A loop begins: its number."""
        number = len(self._loops)
        self._loops[number] = Loop(independent, first_tensor)
        self._ordinals[number] = self._counted(self.opened)
        return number

    def _counted(self, what: object) -> int:
        self._counts[what] += 1
        return self._counts[what]

    def reduction(self, call_path: object, reduced: frozenset[int]) -> Reduction:
        """What the call of `nl.loop_reduce` that runs has reduced, in this iteration of the other loops.

        Loops within a reduced one are entered anew, under new numbers, in each of its iterations: what they have in
        common is their place there. So has a call that is run several times in an iteration.
        """
        within = next((at for at, one in enumerate(self.opened) if one[0] in reduced), len(self.opened))
        outermost = self.opened[within][0] if within < len(self.opened) else None
        inner = tuple((self._ordinals[loop], None if loop in reduced else at) for loop, at in self.opened[within + 1 :])
        turn = self._counted((call_path, self.opened))
        return self._reductions.setdefault((call_path, turn, self.opened[:within], outermost, inner), Reduction())

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
