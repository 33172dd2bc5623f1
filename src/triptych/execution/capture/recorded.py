"""A recording: in force, launches, stores and allocations become nodes of a plan in the place of being run."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from threading import get_ident
from typing import Any, NoReturn, cast

import numpy as np

from triptych.core.dtypes import DTYPES, DType
from triptych.core.errors import CaptureError, ValueTouched
from triptych.core.handles import Handle, Storage, contiguous_strides
from triptych.core.plan import (
    Allocate,
    Choose,
    Constant,
    Copy,
    Fill,
    Launch,
    Node,
    Plan,
    Program,
    SetVariable,
)
from triptych.core.relocate import renamed
from triptych.core.source import SourceLocation
from triptych.execution.call_site import call_site
from triptych.execution.capture.arrays import CapturedArray
from triptych.execution.capture.memory import CapturedHost, CaptureMemory, HostData
from triptych.execution.capture.views import broadcast
from triptych.execution.host_memory import HostArray, elements
from triptych.execution.launch_report import LaunchReport
from triptych.execution.memory import put_in_force
from triptych.execution.variables import stored_here

MOST_NODES = 20_000
"""Of a captured plan: a program that launches without end would fill the memory."""
MOST_BYTES = 1 << 36
"""Of all storages together."""


@dataclass(frozen=True, slots=True)
class LibraryWork:
    """Something that a library (torch) would have computed: no kernel of the author's does it."""

    operator: str
    """As the library calls it."""
    where: SourceLocation | None
    """The author's line."""
    used: bool = False
    """Whether a launch, a copy or an output takes the result: known when the plan is made."""


class CapturedLaunch:
    """What a recorded launch gives back: it has not run, so nothing is known of it."""

    def __init__(self, recording: Recording, kernel: str) -> None:
        """Of a kernel."""
        self._recording, self._kernel = recording, kernel

    def __getattr__(self, name: str) -> NoReturn:
        """An error: counters, findings and times come when the plan is run."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._recording.refuse(f"'{name}' of a launch of '{self._kernel}' is known when the plan is run")

    def __repr__(self) -> str:
        """The kernel."""
        return f"<captured launch of {self._kernel}>"


class _RecordedMemory(CaptureMemory):
    """A capture's memory that tells its recording of data of the host."""

    def __init__(self, recording: Recording, before: CaptureMemory | None) -> None:
        super().__init__(before)
        self.recorder = recording
        self._recording = recording

    def made(self, data: HostData) -> None:
        self._recording.add_before_choices(Constant(data.storage, data.contents))

    def kept(self, storage: Storage) -> None:
        self._recording.add_before_choices(Allocate(storage))

    def changed(self, data: HostData) -> None:
        self._recording.upload_again(data)


class Recording:
    """The nodes so far, in order, and the arrays that they name."""

    def __init__(self, before: Recording | None = None) -> None:
        """Empty; or what goes on from another recording, which it leaves as it is."""
        self.memory = _RecordedMemory(self, None if before is None else before.memory)
        self._thread = get_ident()
        self.inputs: tuple[Handle, ...] = ()
        self.nodes: list[Node] = [] if before is None else list(before.nodes)
        self.programs: dict[str, Program] = {} if before is None else dict(before.programs)
        self.library: list[tuple[LibraryWork, Storage | None]] = [] if before is None else list(before.library)
        """With the storage that holds the result; None where it went to an array that was there."""
        self._names: dict[Program, str] = {program: name for name, program in self.programs.items()}
        self._seen: set[Program] = set()
        self._count = len(self.nodes)
        self._bytes = sum(storage.size for storage in self.memory.known.values())
        self._plan_nodes = self.nodes

    def new_input(self, name: str, dtype: DType, shape: Sequence[int]) -> CapturedArray:
        """An array that the plan takes, dense, in C order, called `name`."""
        handle = self._new(name, dtype, tuple(shape))
        self.inputs = (*self.inputs, handle)
        return CapturedArray(handle)

    def empty(self, shape: tuple[int, ...], dtype: DType) -> CapturedArray:
        """Notes an allocation."""
        handle = self._new(f"array{len(self.memory.known)}", dtype, shape)
        self.add(Allocate(handle.storage))
        return CapturedArray(handle)

    def zeros(self, shape: tuple[int, ...], dtype: DType) -> CapturedArray:
        """Notes an allocation, and that it is filled with zeros."""
        return self.empty(shape, dtype).fill_(0)

    def constant(self, data: np.ndarray[Any, Any], dtype: DType) -> CapturedArray:
        """Notes data of the host, C-ordered, as an array of the plan.

        Raises:
            CaptureError: for more bytes than a plan takes.
        """
        handle = self._new(f"constant{len(self.memory.known)}", dtype, data.shape)
        self.add(Constant(handle.storage, data.astype(dtype.numpy, copy=False).tobytes()))
        return CapturedArray(handle)

    def constant_of(self, host: HostArray, array: object) -> Handle:
        """Notes the data of a dense array of the host, as a storage of its own."""
        return self.constant(elements(host, array), host.dtype).handle

    def clone(self, source: Handle) -> CapturedArray:
        """Notes an allocation, C-ordered, and a copy to it."""
        made = self.empty(source.shape, source.dtype)
        self.add(Copy(made.handle, source))
        return made

    def current(self, handle: Handle) -> Handle:
        """The handle, of an array of this call; see `CaptureMemory.current`."""
        return self.memory.current(handle)

    def fill(self, target: Handle, value: float) -> None:
        """Notes that every element becomes `value`.

        Raises:
            CaptureError: where the element type has no such value.
        """
        number = float(value) if target.dtype.is_float else value
        if not target.dtype.holds(number):
            raise _mistake(f"{value} is no {target.dtype}")
        self.add(Fill(target, target.dtype.nearest(number) if target.dtype.is_float else int(number)))

    def copy(self, target: Handle, source: object) -> None:
        """Notes that the elements of an array go to `target`, broadcast to its shape; data of the host is converted.

        Raises:
            CaptureError: for an array of the capture with another element type.
        """
        found = self._source(target, source)
        self.add(Copy(target, broadcast(found, target.shape)))

    def _source(self, target: Handle, source: object) -> Handle:
        if isinstance(source, list | tuple | np.generic | int | float):
            return self.constant(np.asarray(cast(Any, source)), target.dtype).handle
        host = self.memory.find(source)
        if not isinstance(host, CapturedHost):
            return self.constant(elements(host, source), target.dtype).handle
        if host.dtype != target.dtype:
            raise _mistake(f"a copy of {host.dtype} to {target.dtype} is a conversion, which a kernel must make")
        return self.memory.place(host)

    def upload_again(self, data: HostData) -> None:
        """Notes that the host has changed its data."""
        size = data.storage.size
        fresh = self.memory.new(f"constant{len(self.memory.known)}", size)
        self.add(Constant(fresh, data.contents))
        self.add(Copy(_whole(data.storage), _whole(fresh)))

    def launch(self, program: Program, launch: Launch) -> LaunchReport:
        """Notes a launch."""
        self.add(replace(launch, program=self._register(program, launch.program)))
        return cast("LaunchReport", CapturedLaunch(self, launch.entry))

    def run_plan(self, plan: Plan) -> tuple[CapturedArray, ...]:
        """Notes a plan over handles of this recording; arrays without values for its outputs."""
        for node in plan.nodes:
            for storage in node.makes:
                self.memory.known.setdefault(id(storage), storage)
            if isinstance(node, Launch | SetVariable):
                node = replace(node, program=self._register(plan.programs[node.program], node.program))
            self.add(node)
        return tuple(map(CapturedArray, plan.outputs))

    def set_variable(self, program: Program, node: SetVariable) -> None:
        """Notes that the host stores to a variable of a module."""
        self.add(replace(node, program=self._register(program, node.program)))

    def note_library_work(self, operator: str, result: Storage | None) -> None:
        """Notes that a library computes something, and where the result is, if that is new."""
        self.library.append((LibraryWork(operator, call_site()), result))

    @contextmanager
    def alternative(self) -> Generator[list[Node]]:
        """What is noted in the block goes to the list that the block gets, not to the plan."""
        outer, self.nodes = self.nodes, []
        try:
            yield self.nodes
        finally:
            self.nodes = outer

    def choose(self, alternatives: Mapping[str, Sequence[Node]]) -> None:
        """Notes a choice among alternatives, by label; a single one is no choice."""
        if len(alternatives) == 1:
            self.nodes += next(iter(alternatives.values()))
            return
        self.add(Choose(tuple(alternatives), tuple(Plan(tuple(nodes)) for nodes in alternatives.values())))

    def add_before_choices(self, node: Node) -> None:
        """Notes a node that holds for all alternatives, if one is being noted."""
        inside, self.nodes = self.nodes, self._plan_nodes
        try:
            self.add(node)
        finally:
            self.nodes = inside

    def add(self, node: Node) -> None:
        """Notes a node.

        Raises:
            CaptureError: where it is wrong, names an array of nobody's, is one too many, or comes from another thread,
                whose place among this one's nodes would be a matter of chance.
        """
        if get_ident() != self._thread:
            raise _mistake("a launch, store or allocation of another thread than the one that was called")
        for handle in node.handles:
            if id(handle.storage) not in self.memory.known:
                raise _mistake(f"'{handle.storage.name}' is no array of this call")
        for mistake in node.mistakes(frozenset(self.programs)):
            raise _mistake(mistake)
        self._count += 1
        if self._count > MOST_NODES:
            raise _mistake(f"more than {MOST_NODES} launches, stores and allocations")
        self.nodes.append(node)

    def refuse(self, what: str) -> ValueTouched:
        """The error of something that needs values or a machine, at the author's line."""
        return ValueTouched(
            f"{what}: the program is captured, nothing runs",
            where=call_site(),
            hint="launch kernels, and return arrays",
        )

    def plan(self, outputs: Sequence[Handle], names: Sequence[str] = ()) -> Plan:
        """What was noted; `names` are those of the outputs' storages, where the plan made them itself.

        The other storages are called as launches call their arguments.
        """
        plan = Plan(tuple(self.nodes), dict(self.programs), self.inputs, tuple(outputs))
        fixed = {handle.storage: handle.storage.name for handle in self.inputs}
        for handle, name in zip(outputs, names, strict=False):
            fixed.setdefault(handle.storage, name)
        return renamed(plan, fixed)

    def library_work(self, outputs: Sequence[Handle]) -> tuple[LibraryWork, ...]:
        """What libraries would have computed, and whether the plan uses it."""
        used = {handle.storage for node in self.nodes for handle in _named(node)}
        used |= {handle.storage for handle in outputs}
        return tuple(replace(work, used=result is None or result in used) for work, result in self.library)

    def _new(self, name: str, dtype: DType, shape: tuple[int, ...]) -> Handle:
        size = prod(shape) * dtype.bytes
        self._bytes += size
        if self._bytes > MOST_BYTES:
            raise _mistake(f"arrays of {self._bytes} bytes in all; at most {MOST_BYTES}")
        return Handle(self.memory.new(name, size), dtype, shape, contiguous_strides(shape, dtype))

    def _register(self, program: Program, wanted: str) -> str:
        """The program's name in the plan: as the launch has it, numbered where another has that."""
        name = self._names.get(program)
        if name is None:
            name, number = wanted, 1
            while name in self.programs:
                number += 1
                name = f"{wanted}.{number}"
            self.programs[name], self._names[program] = program, name
        if program not in self._seen:
            self._seen.add(program)
            for before in stored_here(program, name):
                values = tuple(self.current(one) if isinstance(one, Handle) else one for one in before.values)
                self.add_before_choices(replace(before, values=values))
        return name


def _mistake(what: str) -> CaptureError:
    """The error of something that no plan can hold, at the author's line."""
    return CaptureError(what, where=call_site())


def _named(node: Node) -> Iterable[Handle]:
    yield from node.handles
    for plan in node.plans:
        for inner in plan.nodes:
            yield from _named(inner)


def _whole(storage: Storage) -> Handle:
    return Handle(storage, DTYPES["u8"], (storage.size,), (1,))


@contextmanager
def recording(before: Recording | None = None) -> Generator[Recording]:
    """Records, in the block and in every thread, what programs launch, allocate and store.

    Args:
        before: a recording to go on from: its arrays and nodes are this one's too.

    Raises:
        CaptureError: inside another recording.
    """
    made = Recording(before)
    outer = put_in_force(made.memory)
    try:
        if outer.recorder is not None:
            raise CaptureError("a recording inside another", where=call_site())
        yield made
    finally:
        put_in_force(outer)
