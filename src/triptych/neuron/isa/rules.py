"""The checks that several rows share, as makers: `same_partitions("dst", "data")` is the check of one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triptych.core.errors import UnknownName
from triptych.neuron.isa.alu import ABSENT, ALU, AluKind, AluOperation
from triptych.neuron.isa.functions import FUNCTIONS
from triptych.neuron.isa.hardware import Space
from triptych.neuron.isa.row import Check, Subject
from triptych.neuron.isa.trace import Region


def same_partitions(first: str, *others: str) -> Check:
    """The operands have as many partitions as `first`."""

    def check(subject: Subject) -> None:
        expected = subject.instruction.region(first).partitions
        for name, region in _regions(subject, others):
            if region.partitions != expected:
                raise subject.refuse(
                    f"{subject.describe(name)} has {region.partitions} partitions, "
                    f"{subject.describe(first)} has {expected}: they must be equal",
                    "engines do not broadcast over partitions: nl.broadcast_to makes the copy",
                )

    return check


def same_elements(first: str, *others: str) -> Check:
    """The operands have as many elements in each partition as `first`: no engine broadcasts a tile."""

    def check(subject: Subject) -> None:
        expected = subject.instruction.region(first).free
        for name, region in _regions(subject, others):
            if region.free != expected:
                error = subject.refuse(
                    f"'{first}' free total elements {expected} != '{name}' free total elements {region.free} "
                    f"({subject.describe(name)} has the shape {list(region.shape)})",
                    "tiles are not broadcast: nisa.tensor_scalar takes an operand of one element a partition",
                )
                if region.free != 1 or subject.row.rule(name) is None:
                    raise error
                subject.breach(error)

    return check


def same_shape(first: str, *others: str) -> Check:
    """The operands have the partitions of `first`, and as many elements in each."""
    partitions, elements = same_partitions(first, *others), same_elements(first, *others)

    def check(subject: Subject) -> None:
        partitions(subject)
        elements(subject)

    return check


def one_a_partition(name: str, like: str, *, float32: bool = True) -> Check:
    """The operand is a number, or a tile of one element in each partition of `like`."""

    def check(subject: Subject) -> None:
        region = subject.region(name)
        if region is None:
            return
        expected = subject.instruction.region(like).partitions
        if region.free != 1 or region.partitions != expected:
            raise subject.refuse(
                f"{subject.describe(name)} has the shape {list(region.shape)}; expected [{expected}, 1] or a number"
            )
        dtype = subject.tensor(name).dtype
        if float32 and dtype.name != "f32":
            raise subject.refuse(f"'{name}' must be float32, got {dtype.numpy} ({subject.describe(name)})")

    return check


def not_both_in_psum(first: str, second: str) -> Check:
    """At most one of the inputs lies in PSUM: there is one read port."""

    def check(subject: Subject) -> None:
        names = [name for name in (first, second) if subject.region(name) is not None]
        if len(names) == 2 and all(subject.tensor(name).space is Space.PSUM for name in names):
            subject.breach(
                subject.refuse(
                    f"{subject.describe(first)} and {subject.describe(second)} both lie in PSUM",
                    "copy one of them to SBUF first: nisa.tensor_copy",
                )
            )

    return check


def same_dtype(first: str, second: str) -> Check:
    """Both operands have one dtype."""

    def check(subject: Subject) -> None:
        if subject.region(first) is None or subject.region(second) is None:
            return
        left, right = subject.tensor(first).dtype, subject.tensor(second).dtype
        if left != right:
            raise subject.refuse(
                f"{subject.describe(first)} is {left.numpy}, {subject.describe(second)} is {right.numpy}: "
                "they must have one dtype"
            )

    return check


def packed_alike(subject: Subject) -> None:
    """Packed elements (x4) are moved between tensors of one dtype, and set to 0: nothing converts them."""
    regions = [name for name in ("dst", "src") if subject.region(name) is not None]
    dtypes = {subject.tensor(name).dtype for name in regions}
    if len(dtypes) > 1 and any(one.packed for one in dtypes):
        raise subject.refuse(
            f"{subject.describe('src')} is {subject.tensor('src').dtype.label}, {subject.describe('dst')} is "
            f"{subject.tensor('dst').dtype.label}: packed elements are not converted"
        )


def alu_operation(subject: Subject, attribute: str) -> AluOperation:
    """The operation that an attribute names.

    Raises:
        NkiError: for one that no engine has.
        UnknownName: for a name that NKI does not know either.
    """
    name = str(subject.instruction.attributes[attribute])
    if name in ABSENT:
        subject.breach(subject.refuse(f"'{name}' has no hardware instruction", ABSENT[name]))
    if name not in ALU:
        raise UnknownName.of("operation", name, ALU, subject.instruction.where)
    first, target = ALU[name].core_generation, subject.hardware
    if target.core_generation < first:
        raise subject.refuse(f"'{name}' needs NeuronCore-v{first} (gen{first}) or later; {target.target} is older")
    return ALU[name]


def _regions(subject: Subject, names: Sequence[str]) -> Iterator[tuple[str, Region]]:
    """The named operands that are tiles."""
    for name in names:
        region = subject.region(name)
        if region is not None:
            yield name, region


def arithmetic(*attributes: str) -> Check:
    """The attributes name arithmetic operations: the instruction computes in float32 and has no bit operations."""

    def check(subject: Subject) -> None:
        for attribute in attributes:
            operation = alu_operation(subject, attribute)
            if operation.kind is AluKind.BITVEC:
                raise subject.refuse(
                    f"{attribute} '{operation.name}' is a bit operation, which this instruction has not"
                )

    return check


def alu(attribute: str, *operands: str, reduction: bool = False, reverse: str = "") -> Check:
    """The attribute names an operation that the engine has, on operands whose dtypes it takes.

    `reverse` is the attribute, where there is one, that exchanges the operands.
    """

    def check(subject: Subject) -> None:
        if subject.instruction.attributes.get(attribute) is None:
            return
        operation = alu_operation(subject, attribute)
        engine = subject.instruction.engine
        if engine not in operation.engines:
            able = ", ".join(one.value for one in operation.engines)
            raise subject.refuse(f"the {engine.value} engine has no '{operation.name}'; engines that have it: {able}")
        if reduction and not operation.reduces:
            raise subject.refuse(f"'{operation.name}' cannot reduce")
        if operation.kind is AluKind.BITVEC:
            _integers(subject, operation, operands)
            for name in operands:
                _immediate_bits(subject, operation, name, reverse=reverse)

    return check


def _immediate_bits(subject: Subject, operation: AluOperation, name: str, *, reverse: str) -> None:
    """A number that a bit operation takes is a whole one of 32 bits; an amount to shift by is not negative."""
    value = subject.instruction.operands.get(name)
    if value is None or isinstance(value, Region):
        return
    if not float(value).is_integer() or not -(1 << 31) <= value < 1 << 32:
        raise subject.refuse(f"'{operation.name}' works on integers; {name} is {value:g}, no whole number of 32 bits")
    if operation.shifts and value < 0 and not subject.instruction.attributes.get(reverse):
        raise subject.refuse(f"'{operation.name}' by {value:g}: an amount to shift by cannot be negative")


COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def one_of(attribute: str, names: tuple[str, ...]) -> Check:
    """The attribute names one of the operations that the instruction has."""

    def check(subject: Subject) -> None:
        name = subject.instruction.attributes[attribute]
        if name not in names:
            raise subject.refuse(f"{attribute} is '{name}'; the instruction has {', '.join(names)}")

    return check


def comparison(attribute: str) -> Check:
    """The attribute names a comparison."""
    return one_of(attribute, COMPARISONS)


def _integers(subject: Subject, operation: AluOperation, operands: tuple[str, ...]) -> None:
    for name in operands:
        if subject.region(name) is not None and subject.tensor(name).dtype.numpy.kind not in "iu":
            raise subject.refuse(
                f"'{operation.name}' works on integers; {subject.describe(name)} is {subject.tensor(name).dtype.numpy}"
            )


def activation_function(subject: Subject) -> None:
    """The attribute `function` names an activation function."""
    name = str(subject.instruction.attributes["function"])
    if name not in FUNCTIONS:
        raise UnknownName.of("activation function", name, FUNCTIONS, subject.instruction.where)
