"""Verification of an instruction against its row and the hardware: what the compiler refuses, with file and line.

The language calls it for each instruction that it records; the machine calls it again for a trace that it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triptych.core.dtypes import DTYPES
from triptych.core.errors import UnknownName
from triptych.core.launches import Finding
from triptych.neuron.isa.dynamic import check_dynamic, statically
from triptych.neuron.isa.hardware import Hardware, Space, start_partitions
from triptych.neuron.isa.row import ROWS, OperandRule, Row, Subject, Surroundings
from triptych.neuron.isa.trace import Instruction, Pattern, Region, SharedAttributes, Tensor, kind_of


def find_row(instruction: Instruction) -> Row:
    """The row of an instruction.

    Raises:
        UnknownName: where there is none.
    """
    found = ROWS.get(instruction.operation)
    if found is None:
        raise UnknownName.of("instruction", instruction.operation, ROWS, instruction.where)
    return found


def verify(
    instruction: Instruction,
    surroundings: Surroundings,
    notices: list[Finding] | None = None,
    *,
    splits: bool = False,
) -> None:
    """Check operands, engine, spaces, bounds, partitions, and the row's own rules.

    `notices` collects what AWS's compiler refuses and its simulator does not; None: it is refused.
    `splits`: an instruction may have more axes than the engines walk, as the language splits it.

    Raises:
        NkiLimitError: for a size or a place that the hardware does not have.
        NkiError: for any other broken rule.
        UnknownName: for an instruction, operand, attribute or operation that there is not.
        TypeError: for an attribute of a type that no language records.
    """
    subject = Subject(instruction, find_row(instruction), surroundings, notices, splits)
    _check_names(subject)
    _check_attributes(subject)
    for rule in subject.row.operands:
        region = subject.region(rule.name)
        if region is not None:
            _check_region(subject, rule, region)
    for check in subject.row.checks:
        check(subject)


_MOST_KNOWN, _MOST_MEMORIES, _MOST_WALKS = 1 << 13, 8, 1 << 12
"""What of each is kept: signatures and walks of a memory when a verifier begins, memories, a verifier's own walks."""


class _Memory:
    """What verifiers of one target, generation and grid have found to keep the rules: traces of it share that.

    Kinds and walks are told apart by their identity; what is known names the objects, so that none is another's.
    """

    __slots__ = ("hardware", "kinds", "known", "walks")

    def __init__(self, hardware: Hardware) -> None:
        self.hardware = hardware
        self.known: set[object] = set()
        self.kinds: dict[object, _Kind] = {}
        self.walks: dict[Pattern, _Walked] = {}

    @classmethod
    def of(cls, surroundings: Surroundings, *, splits: bool) -> _Memory:
        """That of all that the rules look at besides an instruction and its tensors; a full one is begun anew."""
        hardware = surroundings.hardware
        key = (id(hardware), surroundings.generation, surroundings.grid, splits)
        found = _MEMORIES.get(key)
        if found is None or found.hardware is not hardware or max(len(found.known), len(found.walks)) > _MOST_KNOWN:
            if len(_MEMORIES) >= _MOST_MEMORIES:
                _MEMORIES.clear()
            found = _MEMORIES[key] = cls(hardware)
        return found


_MEMORIES: dict[object, _Memory] = {}


class Verifier:
    """Verifies the instructions of a trace; those that are like one before, but for where their tiles lie, at once."""

    def __init__(
        self, surroundings: Surroundings, notices: list[Finding] | None = None, *, splits: bool = False
    ) -> None:
        """The tensors and arguments may grow and change; `notices` and `splits` as those of `verify`."""
        self._splits = splits
        self._surroundings = surroundings
        self._tensors = surroundings.tensors
        self._notices = notices
        self._memory = _Memory.of(surroundings, splits=splits)
        self._kinds: dict[int, tuple[Tensor, _Kind]] = {}
        self._walks: dict[int, tuple[Pattern, _Walked]] = {}
        """By the identity of a pattern: a language makes those of many instructions once."""

    def verify(self, instruction: Instruction, signature: object = None) -> None:
        """As `verify` does; `signature`, where a language has one, is all that the rules look at (`place` of regions).

        Raises:
            NkiError: (and its kinds) for a broken rule.
            UnknownName: for a name that there is not.
            TypeError: for an attribute of a type that no language records.
        """
        if signature is None:
            signature = self._signature(instruction)
        known = self._memory.known
        if signature in known:
            return
        told = len(self._notices or ())
        verify(instruction, self._surroundings, self._notices, splits=self._splits)
        if signature is not None and len(self._notices or ()) == told:
            known.add(signature)

    def _signature(self, instruction: Instruction) -> object:
        """All that the rules look at; None where a place is known later, or lies outside of its tensor."""
        attributes = instruction.attributes
        found: list[object] = [instruction.operation, id(instruction.engine)]
        if type(attributes) is SharedAttributes:
            found.append(id(attributes))
        else:
            found += (*attributes, *attributes.values(), *map(kind_of, attributes.values()))  # True is not 1
        for name, operand in instruction.operands.items():
            if type(operand) is not Region:
                found += (name, operand)
                continue
            place = self.place(operand)
            if place is None:
                return None
            found += (name, place)
        return tuple(found)

    def place(self, region: Region) -> object:
        """All that the rules look at of a region; None where that is known later, or outside of its tensor."""
        at, pattern, column = region.tensor, region.pattern, region.offset
        if region.dynamic is not None or not 0 <= at < len(self._tensors):
            return None
        tensor = self._tensors[at]
        declared = self._kinds.get(at)
        kind = declared[1] if declared is not None and declared[0] is tensor else self._kind(at, tensor)
        seen = self._walks.get(id(pattern))
        walked = seen[1] if seen is not None and seen[0] is pattern else self._walked(pattern)
        if kind.on_chip:
            row, column = divmod(column, kind.free)
            low, high = walked.inner
            place = (walked, kind, row, column if kind.has_banks else 0)
        else:
            low, high = walked.whole
            place = (walked, kind)
        if column + low < 0 or column + high >= kind.free:
            return None
        return place

    def _walked(self, pattern: Pattern) -> _Walked:
        walked = self._memory.walks.get(pattern)
        if walked is None:
            walked = self._memory.walks[pattern] = _Walked.of(pattern)
        if len(self._walks) < _MOST_WALKS:
            self._walks[id(pattern)] = (pattern, walked)
        return walked

    def _kind(self, at: int, tensor: Tensor) -> _Kind:
        seen = self._surroundings.seen_by_all(at)
        facts = (id(tensor.space), tensor.dtype.name, tensor.partitions, tensor.free, tensor.start, seen)
        kind = self._memory.kinds.get(facts)
        if kind is None:
            on_chip, has_banks = tensor.space.on_chip, tensor.space is Space.PSUM
            kind = self._memory.kinds[facts] = _Kind(tensor.free, on_chip, has_banks)
        self._kinds[at] = (tensor, kind)
        return kind


@dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    """Tensors of which all that the rules look at is the same; a memory has one of them."""

    free: int
    on_chip: bool
    has_banks: bool
    """Whether it counts where in a partition something lies."""


@dataclass(frozen=True, slots=True, eq=False)
class _Walked:
    """How far a pattern reaches below and above its offset: all of it, and behind its first axis."""

    whole: tuple[int, int]
    inner: tuple[int, int]

    @classmethod
    def of(cls, pattern: Pattern) -> _Walked:
        return cls(Region(0, 0, pattern).bounds, Region(0, 0, pattern[1:]).bounds)


def _check_names(subject: Subject) -> None:
    instruction, row = subject.instruction, subject.row
    if subject.hardware.core_generation < row.core_generation:
        raise subject.refuse(
            f"needs NeuronCore-v{row.core_generation} (gen{row.core_generation}) or later; "
            f"{subject.hardware.target} has NeuronCore-v{subject.hardware.core_generation}"
        )
    if instruction.engine not in row.engines:
        able = ", ".join(engine.value for engine in row.engines)
        raise subject.refuse(f"the {instruction.engine.value} engine does not execute it; engines that do: {able}")
    for name in instruction.operands:
        if row.rule(name) is None:
            raise UnknownName.of(
                f"operand of {row.name}", name, [rule.name for rule in row.operands], instruction.where
            )
    for name in instruction.attributes:
        if name not in row.attributes:
            raise UnknownName.of(f"attribute of {row.name}", name, row.attributes, instruction.where)
    for rule in row.operands:
        operand = instruction.operands.get(rule.name)
        if operand is None and not rule.optional:
            raise subject.refuse(f"operand '{rule.name}' is missing")
        if operand is not None and not isinstance(operand, Region) and not rule.immediate:
            raise subject.refuse(f"operand '{rule.name}' is the number {operand}; expected a tile")
        if isinstance(operand, Region) and not rule.spaces:
            raise subject.refuse(f"operand '{rule.name}' is {subject.describe(rule.name)}; expected a number")


def _check_attributes(subject: Subject) -> None:
    """All attributes of the row are there, of the type that it says."""
    for name, rule in subject.row.attributes.items():
        value = subject.instruction.attributes.get(name)
        if type(value) is not rule.kind and not (value is None and rule.optional):
            raise TypeError(f"{subject.row.name}: attribute '{name}' is {value!r}; expected a {rule.kind.__name__}")


def _check_region(subject: Subject, rule: OperandRule, region: Region) -> None:
    if not 0 <= region.tensor < len(subject.tensors) or any(count < 1 for _, count in region.pattern):
        raise subject.refuse(f"operand '{rule.name}' is an empty region or one of no tensor")
    space = subject.tensors[region.tensor].space
    if space not in rule.spaces:
        expected = sorted(allowed.value for allowed in rule.spaces)
        raise subject.refuse(f"{rule.name} must be in {expected}, got {space.value} ({subject.describe(rule.name)})")
    _check_values(subject, rule, region)
    if region.dynamic is not None:
        check_dynamic(subject, rule, region, region.dynamic)
        region = statically(region)
    engine = subject.instruction.engine
    if space is Space.PSUM and not engine.facts.reaches_psum:
        raise subject.refuse(
            f"{subject.describe(rule.name)} lies in PSUM, which the {engine.value} engine cannot reach"
        )
    if space.on_chip:
        _check_tile(subject, rule, region)
    else:
        _check_bounds(subject, rule.name, region)


def _check_values(subject: Subject, rule: OperandRule, region: Region) -> None:
    """The dtype and the elements a partition that the row asks for."""
    dtype = subject.tensors[region.tensor].dtype
    if dtype.packed and dtype.name not in rule.dtypes and not subject.row.moves_bits:
        raise subject.refuse(
            f"{subject.describe(rule.name)} is {dtype}, four numbers packed into one element, which only "
            "nisa.quantize_mx, nisa.nc_matmul_mx and copies between tensors of one dtype take"
        )
    if rule.dtypes and dtype.name not in rule.dtypes:
        *others, last = [DTYPES[name].label for name in rule.dtypes]
        expected = f"{', '.join(others)} or {last}" if others else last
        raise subject.refuse(f"{subject.describe(rule.name)} is {dtype.label}; expected {expected}")
    if rule.free is not None and not rule.free[0] <= region.free <= rule.free[1]:
        least, most = rule.free
        expected = f"exactly {least}" if least == most else f"{least} to {most}"
        raise subject.exceed(
            f"{subject.describe(rule.name)} has {region.free} elements in each partition; expected {expected}"
        )


def _check_bounds(subject: Subject, name: str, region: Region) -> None:
    low, high = region.bounds
    size = subject.tensors[region.tensor].size
    if low < 0 or high >= size:
        raise subject.exceed(f"{subject.describe(name)} is accessed at elements {low} to {high}; it has {size}")


def _check_tile(subject: Subject, rule: OperandRule, region: Region) -> None:
    name = rule.name
    limit = subject.hardware.partitions
    if region.partitions > limit:
        raise subject.exceed(
            f"partition dimension {region.partitions} of {subject.describe(name)} exceeds the limit {limit} (pmax)",
            f"work on tiles of at most {limit} partitions",
        )
    _check_bounds(subject, name, region)
    free = subject.tensors[region.tensor].free
    step = region.pattern[0][0] if region.partitions > 1 else free
    low, high = Region(region.tensor, region.offset % free, region.pattern[1:]).bounds
    if step % free or low < 0 or high >= free:
        raise subject.refuse(
            f"{subject.describe(name)} leaves its partitions: partition step {step}, free elements {low} to {high} "
            f"of {free}",
            "the first axis of an on-chip tile walks the partitions, the others stay inside one",
        )
    _check_free_axes(subject, name, region)
    if not rule.any_start and not subject.instruction.engine.facts.starts_anywhere:
        _check_start(subject, name, region, subject.tensors[region.tensor].start + region.offset // free)


def _check_free_axes(subject: Subject, name: str, region: Region) -> None:
    axes = merged_axes(region.pattern[1:])
    if axes > subject.hardware.free_axes and not subject.splits:
        raise subject.exceed(
            f"{subject.describe(name)} is walked along {axes} free axes; the limit is {subject.hardware.free_axes}"
        )


def merged_axes(pattern: Sequence[tuple[int, int]]) -> int:
    """How many axes are left when neighbours that form one run of equal steps are joined."""
    axes = 0
    inner: tuple[int, int] | None = None
    for step, count in reversed(pattern):
        if count == 1:
            continue
        if inner is None or step != inner[0] * inner[1]:
            axes, inner = axes + 1, (step, count)
        else:
            inner = (inner[0], inner[1] * count)
    return axes


def _check_start(subject: Subject, name: str, region: Region, start: int) -> None:
    partitions = region.partitions
    starts = start_partitions(partitions)
    if start not in starts:
        subject.breach(
            subject.exceed(
                f"invalid access of {partitions} partitions starting at partition {start} by {subject.describe(name)}; "
                f"so many may start at {', '.join(map(str, starts))}",
                "move the data with nisa.dma_copy, which reaches any partition",
            )
        )
