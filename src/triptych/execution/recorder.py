"""What stands in the place of running: whoever records what would be run has a memory in force that names one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from triptych.core.dtypes import DType
    from triptych.core.handles import Handle, Storage
    from triptych.core.plan import Launch, Node, Plan, Program, SetVariable
    from triptych.execution.arrays import Array
    from triptych.execution.host_memory import HostArray
    from triptych.execution.launch_report import LaunchReport


class Recorder(Protocol):
    """Takes launches, plans, stores and allocations, and runs none of them (`execution/capture`)."""

    def launch(self, program: Program, launch: Launch) -> LaunchReport:
        """Notes a launch; what stands for its report knows nothing yet."""
        ...

    def run_plan(self, plan: Plan) -> tuple[Array, ...]:
        """Notes a plan over handles of the memory in force; arrays without values for its outputs."""
        ...

    def set_variable(self, program: Program, node: SetVariable) -> None:
        """Notes that the host stores to a variable of a module."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """Notes an allocation."""
        ...

    def zeros(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """Notes an allocation, and that it is filled with zeros."""
        ...

    def current(self, handle: Handle) -> Handle:
        """The handle of an array, also of one that was made while something else was recorded."""
        ...

    def fill(self, target: Handle, value: float) -> None:
        """Notes that every element becomes `value`."""
        ...

    def copy(self, target: Handle, source: object) -> None:
        """Notes that the elements of an array, captured or with data, go to `target`, broadcast to its shape."""
        ...

    def constant_of(self, host: HostArray, array: object) -> Handle:
        """Notes the data of a dense array of the host, as a storage of its own."""
        ...

    def note_library_work(self, operator: str, result: Storage | None) -> None:
        """Notes that a library would compute something; where the result is, if that is new."""
        ...

    def clone(self, source: Handle) -> Array:
        """Notes an allocation, C-ordered, and a copy to it."""
        ...

    def alternative(self) -> AbstractContextManager[list[Node]]:
        """What is noted in the block goes to the list that the block gets."""
        ...

    def choose(self, alternatives: Mapping[str, Sequence[Node]]) -> None:
        """Notes a choice among such lists, by label; a single one is no choice."""
        ...

    def refuse(self, what: str) -> Exception:
        """The error of something that needs values or a machine, at the author's line."""
        ...
