"""An array of a capture: all that can be asked of an array but its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from triptych.core.dtypes import dtype_of
from triptych.core.errors import CaptureError, ValueTouched
from triptych.core.handles import Handle
from triptych.execution.arrays import Array, Index
from triptych.execution.call_site import call_site
from triptych.execution.capture.views import indexed, reinterpreted, reshaped, transposed
from triptych.execution.memory import memory

if TYPE_CHECKING:
    from triptych.execution.recorder import Recorder

WHY = "while a program is captured its arrays have no values: those come when the plan is run"
ADVICE = "compute it in a kernel; shape, dtype, strides and data_ptr() may be asked for"


def touched(array: str, what: str) -> ValueTouched:
    """The error of something that needs the values of an array, at the author's line."""
    return ValueTouched(f"{what} needs the values of {array}; {WHY}", where=call_site(), hint=ADVICE)


class CapturedArray(Array):
    """An array without data: `shape`, `dtype`, `strides`, `data_ptr()`, views, and stores that the plan has as nodes.

    Anything that needs a value raises `ValueTouched`, which names the author's line.
    """

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        """A view of a storage of the plan."""
        self._handle = handle

    @property
    def _buffer(self) -> NDArray[Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        raise touched(self._label, "this")

    @property
    def _label(self) -> str:
        extents = ", ".join(map(str, self.shape))
        return f"'{self._handle.storage.name}' ({self._handle.dtype}[{extents}])"

    @property
    def _recorder(self) -> Recorder:
        found = memory().recorder
        if found is None:
            raise CaptureError(f"{self._label} belongs to a capture that has ended", where=call_site())
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return self._handle.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type, as numpy names it."""
        return self._handle.dtype.numpy

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        return self._handle.strides

    @property
    def size(self) -> int:
        """Elements."""
        return self._handle.size

    @property
    def ndim(self) -> int:
        """Axes."""
        return self._handle.ndim

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, gaps between them left out."""
        return self._handle.nbytes

    @property
    def handle(self) -> Handle:
        """The view of a storage of the plan."""
        found = memory().recorder
        return self._handle if found is None else found.current(self._handle)

    def numel(self) -> int:
        """Elements."""
        return self.size

    def element_size(self) -> int:
        """Bytes of an element."""
        return self._handle.dtype.bytes

    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps."""
        return self._handle.contiguous

    def __getitem__(self, key: Index | tuple[Index, ...]) -> CapturedArray:
        """A view, of no axes where every index is a number."""
        return CapturedArray(indexed(self._handle, key))

    def __setitem__(self, key: Index | tuple[Index, ...], value: object) -> None:
        """Notes a fill with a number, or a copy of an array of the same element type."""
        view = self[key]
        if isinstance(value, int | float | np.generic):
            number = cast("float", value.item() if isinstance(value, np.generic) else value)
            view.fill_(float(number) if self._handle.dtype.is_float else int(number))
        else:
            view.copy_(value)

    def __len__(self) -> int:
        """Elements along the first axis."""
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[CapturedArray]:
        """Views along the first axis, where there is more than one."""
        if self.ndim < 2:
            raise touched(self._label, "to iterate over elements")
        return (self[position] for position in range(len(self)))

    def reshape(self, *shape: int) -> CapturedArray:
        """The same elements in another shape, as a view.

        Raises:
            UsageError: where strides stand in the way of a view.
        """
        return CapturedArray(reshaped(self._handle, shape))

    def transpose(self, *axes: int) -> CapturedArray:
        """The axes in another order (reversed where none is named), as a view."""
        return CapturedArray(transposed(self._handle, axes))

    def view(self, dtype: object) -> CapturedArray:
        """The same bytes as elements of another type.

        Raises:
            UsageError: where the last axis has gaps, or not the bytes of a whole number of elements.
        """
        return CapturedArray(reinterpreted(self._handle, dtype_of(dtype)))

    def clone(self) -> Array:
        """A copy with an address of its own, C-ordered: an allocation and a copy in the plan."""
        return self._recorder.clone(self.handle)

    def copy_(self, source: object) -> CapturedArray:
        """Notes that the elements of `source` are stored here, broadcast; data of the host is converted.

        Raises:
            CaptureError: for an array of a capture with another element type.
        """
        self._recorder.copy(self.handle, source)
        return self

    def fill_(self, value: float) -> CapturedArray:
        """Notes that `value` is stored in every element."""
        self._recorder.fill(self.handle, value)
        return self

    def __repr__(self) -> str:
        """The storage's name, dtype and shape; there are no values."""
        return f"<captured array {self._label}>"

    def __bool__(self) -> NoReturn:
        """Always an error, as are all below."""
        raise touched(self._label, "bool()")

    def __float__(self) -> NoReturn:
        """A value."""
        raise touched(self._label, "float()")

    def __int__(self) -> NoReturn:
        """A value."""
        raise touched(self._label, "int()")

    def __index__(self) -> NoReturn:
        """A value."""
        raise touched(self._label, "to index by an array")

    def __complex__(self) -> NoReturn:
        """A value."""
        raise touched(self._label, "complex()")

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NoReturn:
        """Values."""
        raise touched(self._label, "a numpy array")

    def numpy(self) -> NoReturn:
        """Values."""
        raise touched(self._label, "numpy()")

    def item(self) -> NoReturn:
        """A value."""
        raise touched(self._label, "item()")

    def tolist(self) -> NoReturn:
        """Values."""
        raise touched(self._label, "tolist()")

    def __eq__(self, other: object) -> bool:
        """An error, but for None: to compare arrays is to compare values."""
        if other is None:
            return False
        raise touched(self._label, "to compare")

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> NoReturn:
        """What other kinds of arrays have and this one has not."""
        raise AttributeError(f"captured array {self._label} has no '{name}': {WHY}", name=name, obj=self)


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(self: CapturedArray, *_: object) -> NoReturn:
        raise touched(str(self), f"'{name}'")

    refuse.__doc__ = "An operator of values: always an error."
    return refuse


_OPERATORS = (
    "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "and", "or", "xor",
    "lshift", "rshift",
)  # fmt: skip
for _name in _OPERATORS:
    for _form in ("", "r", "i"):
        setattr(CapturedArray, f"__{_form}{_name}__", _refusing(_name))
for _name in ("lt", "le", "gt", "ge", "neg", "pos", "abs", "invert", "contains", "round"):
    setattr(CapturedArray, f"__{_name}__", _refusing(_name))
