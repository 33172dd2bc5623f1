"""Kernels that Python calls: `kernel[grid, block](…)`; the languages that make PTX share them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Protocol, SupportsIndex, cast

from triptych.core.errors import ArgumentError, LaunchError, UsageError
from triptych.core.plan import Launch, LaunchShape, Plan, Program
from triptych.core.relocate import relocated
from triptych.execution.demangle import readable
from triptych.execution.launch_report import LaunchReport
from triptych.execution.memory import memory
from triptych.execution.run import run_launch_here
from triptych.execution.variables import stored_here
from triptych.languages.arguments import PtxParameter, convert, signature, slots_of
from triptych.languages.calling import calling_location
from triptych.languages.parameters import Parameter

Extents = SupportsIndex | Sequence[SupportsIndex]
"""A grid or a block: a number, or up to three along x, y and z."""

_USE = "write kernel[grid, block](…), kernel[grid, block, shared_bytes](…) or kernel.configure(grid=…, block=…)(…)"


class Entry(Protocol):
    """What is needed of a kernel's entry (`gpu.Entry`)."""

    @property
    def name(self) -> str:
        """The entry's name in the PTX."""
        ...

    @property
    def parameters(self) -> Sequence[PtxParameter]:
        """Its parameters in order."""
        ...


class Kernel:
    """One kernel of a compiled module. `kernel[grid, block]` gives something to call with the kernel's arguments."""

    def __init__(self, program: Program, entry: Entry, known: Sequence[Parameter] = ()) -> None:
        """`known` says what the source tells of each parameter; empty where that is not known."""
        self.program = program
        self.entry = entry
        self.name = readable(entry.name)
        self._slots = slots_of(self.name, entry.parameters, known)
        named = all(parameter.name for parameter in known)
        self._names = tuple(parameter.name or "" for parameter in known) if named else ()

    @property
    def signature(self) -> str:
        """The kernel with its parameters: C++ types and names where they are known, else PTX types."""
        return signature(self.name, self._slots)

    def __getitem__(self, key: object) -> BoundKernel:
        """The kernel with a grid and a block, and the dynamic shared memory in bytes if there is any.

        Raises:
            LaunchError: for anything but two or three such values.
        """
        parts = cast("tuple[object, ...]", key) if isinstance(key, tuple) else (key,)
        match parts:
            case (grid, block):
                return self._bind(grid, block, 0, 1, cooperative=False)
            case (grid, block, shared_bytes):
                return self._bind(grid, block, shared_bytes, 1, cooperative=False)
            case _:
                raise self._error(f"expected a grid and a block in the brackets, got {len(parts)} values")

    def configure(
        self,
        *,
        grid: Extents,
        block: Extents,
        shared_bytes: SupportsIndex = 0,
        cluster: Extents = 1,
        cooperative: bool = False,
    ) -> BoundKernel:
        """The kernel with all that a launch may say.

        Args:
            grid: blocks along x, y and z.
            block: threads of a block along x, y and z.
            shared_bytes: dynamic shared memory of a block.
            cluster: blocks of a cluster along x, y and z.
            cooperative: whether all blocks must be resident at once, for grid-wide barriers.

        Raises:
            LaunchError: where one of them is no whole number, or not positive.
        """
        return self._bind(grid, block, shared_bytes, cluster, cooperative=cooperative)

    def _bind(
        self, grid: object, block: object, shared_bytes: object, cluster: object, *, cooperative: bool
    ) -> BoundKernel:
        shared = _whole(shared_bytes)
        if shared is None or shared < 0:
            raise self._error(f"shared_bytes must be a whole number of bytes, not {shared_bytes!r}")
        three = (self._extents("grid", grid), self._extents("block", block), self._extents("cluster", cluster))
        return BoundKernel(self, LaunchShape(*three[:2], shared, three[2], cooperative))

    def _extents(self, name: str, value: object) -> tuple[int, int, int]:
        """Three extents, those not given being 1."""
        parts = list(cast("Sequence[object]", value)) if isinstance(value, tuple | list) else [value]
        numbers = [number for number in map(_whole, parts) if number is not None]
        if len(numbers) != len(parts) or not 1 <= len(parts) <= 3:
            raise self._error(f"{name} must be one to three whole numbers, not {value!r}")
        if min(numbers) < 1:
            raise self._error(f"{name} {value!r} has nothing in it; every extent must be 1 or more")
        x, y, z = (*numbers, 1, 1)[:3]
        return x, y, z

    def _error(self, message: str) -> LaunchError:
        return LaunchError(f"kernel '{self.name}': {message}", where=calling_location(), hint=_USE)

    def launch(self, how: LaunchShape, arguments: Sequence[object]) -> Launch:
        """One launch, as a plan has it that calls the program as the entry.

        Raises:
            ArgumentError: where the arguments do not fit the kernel's parameters.
        """
        try:
            converted = convert(self.name, self._slots, arguments, memory())
        except ArgumentError as error:
            error.where = error.where or calling_location()
            raise
        return Launch(
            program=self.entry.name,
            entry=self.entry.name,
            grid=how.grid,
            block=how.block,
            arguments=converted,
            shared_bytes=how.shared_bytes,
            cluster=how.cluster,
            cooperative=how.cooperative,
            names=self._names,
        )

    def __call__(self, *arguments: object, **named: object) -> LaunchReport:
        """Always an error: a kernel needs a grid and a block before it can be called."""
        raise UsageError(
            f"kernel '{self.name}' was called without a grid and a block", where=calling_location(), hint=_USE
        )

    def __repr__(self) -> str:
        """The signature."""
        return f"<{self.program.language} kernel {self.signature}>"


@dataclass(frozen=True, slots=True)
class BoundKernel:
    """A kernel with its grid and block, ready to be called."""

    kernel: Kernel
    shape: LaunchShape

    def _refuse_names(self, named: Mapping[str, object]) -> None:
        if named:
            kernel = self.kernel
            raise ArgumentError(
                f"kernel '{kernel.name}': arguments are positional, got {', '.join(f'{name}=' for name in named)}",
                where=calling_location(),
                hint=f"give them in the order of {kernel.signature}",
            )

    def plan(self, *arguments: object, **named: object) -> Plan:
        """The plan that a call with these arguments runs, without running it, to be shipped: it holds no array's data.

        Its storages are called as the parameters that they are passed for, and lie at addresses of its own, so that
        equal calls have equal plans. A whole array stands for each view of it. What the host has stored in the
        module's variables comes along, as it was stored, whatever kernels have stored there since.

        Raises:
            ArgumentError: where the arguments do not fit the kernel's parameters.
        """
        self._refuse_names(named)
        program, launch = self.kernel.program, self.kernel.launch(self.shape, arguments)
        return relocated(Plan.of_launch(program, launch, stored_here(program, launch.program)))

    def __call__(self, *arguments: object, **named: object) -> LaunchReport:
        """Runs the kernel to its end on the simulated device; what it stores is in the arrays when this returns.

        Args:
            arguments: one for each parameter. For a pointer: a contiguous numpy array, a triptych array, a torch tensor
                in the host's memory, None for the null pointer, or a device address as an integer. For a number: a
                number in the parameter's range. For a struct: its bytes.
            named: none; that arguments are positional is an error of ours.

        Returns:
            What the machine counted and found, on the roofline of the chip in force.

        Raises:
            ArgumentError: where the arguments do not fit the kernel's parameters.
            LaunchError: where the launch does not fit the chip in force or the kernel.
            KernelFault: where the kernel did what a device forbids.
        """
        self._refuse_names(named)
        launch = self.kernel.launch(self.shape, arguments)
        try:
            return run_launch_here(self.kernel.program, launch, memory())
        except LaunchError as error:
            error.where = error.where or calling_location()
            raise


def no_attribute(kind: str, name: str, kernels: Iterable[str]) -> AttributeError:
    """The error of `module.kernel`: a module's kernels are taken by subscript."""
    hint = f': write module["{name}"]' if name in kernels else ""
    return AttributeError(f"'{kind}' object has no attribute '{name}'{hint}")


def _whole(value: object) -> int | None:
    try:
        return index(cast(SupportsIndex, value))
    except TypeError:
        return None
