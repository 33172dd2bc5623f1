"""The table of functions that CUDA's runtime gives kernels: what a PTX module declares `.extern` and does not define.

A row is the prototype, as the PTX interoperability guide has it, and the meaning for one thread, over what a `Host`
offers. Every executor of the machine carries these out the same way: lane after lane, in ascending order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from triptych.core.errors import AssertionFailure, KernelFault, MemoryFault
from triptych.core.source import SourceLocation
from triptych.gpu.hardware import FIRST_CODE_ADDRESS
from triptych.gpu.isa.printf import format_printf
from triptych.gpu.isa.types import TYPES, ScalarType
from triptych.gpu.syntax.ast import Instruction, Symbol


class HostFault(Exception):
    """What a function of the host found wrong; whoever runs the kernel adds the thread and the place."""

    def __init__(
        self, error: type[KernelFault], message: str, hint: str, *, where: SourceLocation | None = None
    ) -> None:
        """`error` is the class to raise; `where` a place that the arguments name."""
        super().__init__(message)
        self.error, self.message, self.hint, self.where = error, message, hint, where


class Host(Protocol):
    """What a function's meaning may ask for, on behalf of one thread."""

    def read(self, address: int, size: int) -> bytes:
        """Bytes at a generic address; a `HostFault` where they are not all there."""
        ...

    def read_text(self, address: int) -> bytes:
        """The bytes from a generic address up to a zero."""
        ...

    def describe_thread(self) -> str:
        """The block and the thread as CUDA's messages have them."""
        ...

    def write_output(self, text: bytes) -> bool:
        """Prints; False where the block's share of the buffer has no room for it."""
        ...

    def allocate(self, size: int) -> int:
        """The address of new memory of the heap, 0 where there is no room."""
        ...

    def release(self, address: int) -> bool:
        """Gives memory of the heap back; False where no allocation starts there."""
        ...


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A row: a function that the host provides."""

    name: str
    result: ScalarType | None
    parameters: tuple[ScalarType, ...]
    summary: str
    meaning: Callable[..., int | None]
    """(host, *arguments) -> the result; arguments and result are unsigned integers."""
    uses_heap: bool = False
    """Whether it allocates or frees, so that a launch needs a heap."""

    @property
    def prototype(self) -> str:
        """As listings show it: `(b32) vprintf (b64, b64)`."""
        result = "" if self.result is None else f"({self.result}) "
        return f"{result}{self.name} ({', '.join(t.name for t in self.parameters)})"


HOST_FUNCTIONS: dict[str, HostFunction] = {}
"""The table, by name."""
BAD_POINTER = "%no_function"
"""What is called where a function's address is that of none; no PTX text can name it."""
MOST_TEXT = 1 << 16
"""The longest string, in bytes, that a function reads."""


def is_host_call(instruction: Instruction) -> bool:
    """Whether a `call` calls a function of the host, whose name a module's own functions may not take."""
    return any(isinstance(o, Symbol) and o.name in HOST_FUNCTIONS for o in instruction.operands)


def _function(
    name: str, result: str, parameters: str, *, uses_heap: bool = False
) -> Callable[[Callable[..., int | None]], Callable[..., int | None]]:
    """Adds the decorated meaning to the table; its docstring's first line is the row's summary."""

    def add(meaning: Callable[..., int | None]) -> Callable[..., int | None]:
        summary = (meaning.__doc__ or "").strip().splitlines()[0]
        given = tuple(TYPES[kind] for kind in parameters.split())
        HOST_FUNCTIONS[name] = HostFunction(name, TYPES[result] if result else None, given, summary, meaning, uses_heap)
        return meaning

    return add


@_function("vprintf", "b32", "b64 b64")
def vprintf(host: Host, template: int, arguments: int) -> int:
    """Prints; gives the number of arguments, -1 without a format, -2 where the block's share of the buffer is full."""
    if not template:
        return -1
    text, count = format_printf(host.read_text(template), arguments, host.read, host.read_text)
    return count if host.write_output(text) else -2


@_function("__assertfail", "", "b64 b64 b32 b64 b64")
def assertfail(host: Host, condition: int, file: int, line: int, function: int, character_bytes: int) -> None:
    """Stops the launch: an assertion does not hold."""
    texts = [host.read_text(address).decode(errors="replace") for address in (file, function, condition)]
    message = f"{texts[0]}:{line}: {texts[1]}: {host.describe_thread()} Assertion `{texts[2]}` failed."
    hint = "what the author took for granted does not hold: look at the values that the condition compares"
    raise HostFault(AssertionFailure, message, hint, where=SourceLocation(texts[0], line))


@_function("malloc", "b64", "b64", uses_heap=True)
def malloc(host: Host, size: int) -> int:
    """Memory of the device's heap; null where there is no room. 0 bytes have an address too, as on an H200."""
    return host.allocate(size)


@_function("free", "", "b64", uses_heap=True)
def free(host: Host, address: int) -> None:
    """Gives memory of the device's heap back."""
    if address and not host.release(address):
        raise HostFault(
            MemoryFault,
            f"free of {address:#x}, where no allocation of the heap starts",
            "free what malloc or new gave, once, and at its first byte",
        )


@_function(BAD_POINTER, "", "b64")
def call_nothing(host: Host, address: int) -> None:
    """Stops the launch: an indirect call of what is no function of the call's type."""
    near = "a null pointer" if not address else f"{address:#x}"
    what = "a function of another type" if address >= FIRST_CODE_ADDRESS else "not a function"
    raise HostFault(
        MemoryFault,
        f"call of {near}, which is {what}",
        "is the pointer set, and of the type that it is called with?",
    )
