"""A kernel's arguments as Python values -> what a launch holds, by the PTX type and, where known, the C++ type."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import index
from typing import Protocol, SupportsFloat, SupportsIndex, cast

import numpy as np

from triptych.core.dtypes import DTYPES, DType, dtype_of
from triptych.core.errors import ArgumentError, UnknownName
from triptych.core.plan import Argument, Scalar, Struct
from triptych.execution.host import HostArray, is_array
from triptych.execution.memory import Memory
from triptych.execution.tensor_maps import TensorMap
from triptych.gpu.tensor_map import BYTES as TENSOR_MAP_BYTES
from triptych.languages.parameters import Parameter

_ARRAYS = "pass a numpy array, a triptych array or a torch tensor in the host's memory"
ADDRESS = DTYPES["u64"]
POINTER_BYTES = 8

_BOOLS: tuple[type, ...] = (bool, np.bool_)
_FLOATS: tuple[type, ...] = (float, np.floating)
_NUMBERS: tuple[type, ...] = (*_BOOLS, *_FLOATS, int, np.integer)
_SHOWN: tuple[type, ...] = (*_NUMBERS, str, np.generic)


class PtxParameter(Protocol):
    """What is needed of a parameter of an entry (`gpu.Parameter`)."""

    @property
    def type(self) -> str:
        """The PTX type without its dot: `u64`, `f32`, `b8` for the bytes of a struct."""
        ...

    @property
    def size(self) -> int:
        """Bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Slot:
    """One parameter: its place, its PTX type and what else is known of it."""

    kernel: str
    position: int
    ptx: PtxParameter
    known: Parameter

    @property
    def is_bytes(self) -> bool:
        """Whether it takes raw bytes: a struct, or a 16-bit float, which PTX passes alike."""
        return self.ptx.type == "b8"

    @property
    def text(self) -> str:
        """Its type, as messages show it."""
        bare = f".b8[{self.ptx.size}]" if self.is_bytes else f".{self.ptx.type}"
        return self.known.ctype.text if self.known.ctype else bare

    def advice(self, number: str | None = None) -> str | None:
        """What to pass: an array for a pointer, what `number` says for a number, either where it is not known."""
        ctype = self.known.ctype
        if self.ptx.size != POINTER_BYTES or (ctype is not None and not ctype.pointer):
            return number
        return f"for a number: {number}; for a pointer: {_ARRAYS}" if number and ctype is None else _ARRAYS

    def error(self, message: str, hint: str | None = None) -> ArgumentError:
        """The error of this parameter."""
        name = f" ({self.known.name})" if self.known.name else ""
        return ArgumentError(f"kernel '{self.kernel}': argument {self.position}{name}: {message}", hint=hint)

    def unexpected(self, value: object, hint: str | None = None) -> ArgumentError:
        """The error of a value of the wrong kind."""
        shown = f" {value!r}" if isinstance(value, _SHOWN) else ""
        return self.error(f"expected {self.text}, got {type(value).__name__}{shown}", hint)


def slots_of(kernel: str, parameters: Sequence[PtxParameter], known: Sequence[Parameter]) -> tuple[Slot, ...]:
    """A kernel's parameters. `known` says what else is known of each, and may be empty."""
    known = known or [Parameter()] * len(parameters)
    return tuple(Slot(kernel, *row) for row in zip(range(len(parameters)), parameters, known, strict=True))


def convert(kernel: str, slots: Sequence[Slot], values: Sequence[object], memory: Memory) -> tuple[Argument, ...]:
    """The arguments of a launch, one for each parameter.

    Raises:
        ArgumentError: naming the kernel, the parameter and what it takes.
    """
    if len(values) != len(slots):
        raise ArgumentError(
            f"kernel '{kernel}' takes {len(slots)} arguments, got {len(values)}", hint=signature(kernel, slots)
        )
    return tuple(_convert(slot, value, memory) for slot, value in zip(slots, values, strict=True))


def signature(kernel: str, slots: Sequence[Slot]) -> str:
    """The kernel with its parameters, as the source has them where it is known."""
    return f"{kernel}({', '.join(slot.known.text or slot.text for slot in slots)})"


def _convert(slot: Slot, value: object, memory: Memory) -> Argument:
    if slot.is_bytes:
        return _bytes(slot, value)
    if value is None:
        return _null(slot)
    if is_array(value):
        return _array(slot, value, memory)
    ctype = slot.known.ctype
    scalar = ctype.scalar if ctype is not None else None
    return _number(slot, _scalar_type(slot), scalar, value)


def _null(slot: Slot) -> Scalar:
    ctype = slot.known.ctype
    if slot.ptx.size != POINTER_BYTES or slot.ptx.type.startswith("f") or (ctype is not None and ctype.scalar):
        raise slot.unexpected(None, "None is the null pointer")
    return Scalar(ADDRESS, 0)


def _array(slot: Slot, value: object, memory: Memory) -> Argument:
    ctype = slot.known.ctype
    try:
        host = memory.find(value)
    except ArgumentError as error:
        raise slot.error(f"expected {slot.text}, got {error.message}", error.hint) from error
    is_value = ctype is not None and not ctype.pointer
    if is_value or slot.ptx.size != POINTER_BYTES or slot.ptx.type.startswith("f"):
        raise slot.error(f"expected {slot.text}, got a {host.label} array", "pass a number: array.item(), say")
    handle = memory.place(host)
    if not handle.contiguous:
        raise slot.error(
            f"expected a contiguous array, got strides {handle.strides} for {host.label}",
            "a kernel sees a pointer and no strides: pass np.ascontiguousarray(array), or the whole array and strides",
        )
    if ctype is not None:
        _check_elements(slot, host)
    return handle


def _check_elements(slot: Slot, host: HostArray) -> None:
    ctype = slot.known.ctype
    assert ctype is not None
    if ctype.elements is not None and not host.raw and host.dtype.name not in ctype.elements:
        raise slot.error(
            f"expected {ctype.expected} ({ctype.text}), got a {host.label} array",
            conversion(host, [DTYPES[name] for name in ctype.elements]),
        )
    if not host.owner.extent.writable and not ctype.constant:
        raise slot.error(
            f"the array is read-only, and {ctype.text} may be written through",
            "pass a copy (array.copy()), or declare the parameter const",
        )


def conversion(host: HostArray, wanted: Collection[DType]) -> str:
    """What to do with an array of other elements than those wanted: keep the values, or keep the bytes."""
    unsigned = host.dtype.name[0] == "u"
    best = min(wanted, key=lambda one: ((one.name[0] == "u") != unsigned, one.name))
    name = f"{'np' if hasattr(np, str(best.numpy)) else 'ml_dtypes'}.{best.numpy}"
    values = f"convert the values with .astype({name})"
    row = host.dtype.bytes * (host.shape[-1] if host.shape else 1)
    dense = bool(host.shape) and host.strides[-1] == host.dtype.bytes
    if row % best.bytes == 0 and (dense or best.bytes == host.dtype.bytes):
        return f"{values}, or have the same bytes taken for {best.numpy} with .view({name})"
    return values


def _scalar_type(slot: Slot) -> DType:
    """The PTX type as a dtype; untyped bits (`.b32`) count as unsigned unless the source says more."""
    name = slot.ptx.type
    ctype = slot.known.ctype
    if name.startswith("b") and name[1:].isdigit():
        known = ctype.scalar if ctype is not None else None
        return known if known is not None and known.bytes == slot.ptx.size else DTYPES[f"u{name[1:]}"]
    found = DTYPES.get(name)
    if found is None:
        raise slot.error(f"parameters of type .{name} cannot be passed from the host")
    return found


def _number(slot: Slot, dtype: DType, known: DType | None, value: object) -> Scalar:
    if dtype.is_float:
        return Scalar(dtype, _float(slot, dtype, value))
    low, high = _range(dtype, known)
    number = _integer(slot, value)
    if not low <= number <= high:
        raise slot.error(f"expected {slot.text} ({low} to {high}), got {number}")
    return Scalar(dtype, _wrap(number, dtype))


def _range(dtype: DType, known: DType | None) -> tuple[int, int]:
    """The values that an integer parameter takes. PTX does not tell signed from unsigned: without the source, both."""
    if known is not None and known.name == "b1":
        return 0, 1
    if known is not None and known.bits == dtype.bits and not known.is_float:
        info = np.iinfo(known.numpy)
        return int(info.min), int(info.max)
    return -(1 << (dtype.bits - 1)), (1 << dtype.bits) - 1


def _wrap(number: int, dtype: DType) -> int:
    """The value of the type with the same bits."""
    bits = number & ((1 << dtype.bits) - 1)
    return bits - (1 << dtype.bits) if dtype.name.startswith("s") and bits >> (dtype.bits - 1) else bits


def _integer(slot: Slot, value: object) -> int:
    if isinstance(value, _BOOLS):
        return int(cast(bool, value))
    if isinstance(value, _FLOATS):
        raise slot.unexpected(value, slot.advice("convert it: int(…)"))
    try:
        return index(cast(SupportsIndex, value))
    except TypeError:
        raise slot.unexpected(value, slot.advice()) from None


def _float(slot: Slot, dtype: DType, value: object) -> float:
    if not _is_number(value):
        raise slot.unexpected(value)
    try:
        number = float(cast(SupportsFloat, value))
    except OverflowError:
        raise slot.error(f"expected {slot.text}, got a number beyond every float") from None
    if not dtype.holds(number):
        raise slot.error(f"expected {slot.text}, got {number!r}, which lies beyond the largest {dtype}")
    return dtype.nearest(number)


def _is_number(value: object) -> bool:
    if isinstance(value, _NUMBERS):
        return True
    if not isinstance(value, np.generic):
        return False
    try:
        return dtype_of(np.asarray(cast(object, value)).dtype).is_float  # bfloat16 and its like
    except UnknownName:
        return False


def _bytes(slot: Slot, value: object) -> Struct:
    if isinstance(value, TensorMap) and slot.ptx.size == TENSOR_MAP_BYTES:
        return value.argument
    ctype = slot.known.ctype
    scalar = ctype.scalar if ctype is not None else None
    if scalar is not None and scalar.is_float and _is_number(value):
        return Struct(np.asarray(_float(slot, scalar, value)).astype(scalar.numpy).tobytes())
    data = _raw(value)
    if data is None or len(data) != slot.ptx.size:
        got = f"{len(data)} bytes" if data is not None else type(value).__name__
        raise slot.error(
            f"expected {slot.text} by value, {slot.ptx.size} bytes, got {got}",
            "pass bytes, a ctypes structure, or an element of a numpy array of a structured dtype (align=True)",
        )
    return Struct(data)


def _raw(value: object) -> bytes | None:
    """The bytes of a struct: of numpy scalars, arrays without axes and whatever has a buffer."""
    if isinstance(value, np.generic | np.ndarray):
        array = np.asarray(cast(object, value))
        return array.tobytes() if array.ndim == 0 and not array.dtype.hasobject else None
    if isinstance(value, _SHOWN) or value is None:
        return None
    try:
        return bytes(memoryview(cast(bytes, value)))
    except TypeError:
        return None
