"""What is needed of torch's tensors, for the type checker: torch itself may not be there."""

from __future__ import annotations

from typing import Protocol


class UntypedStorage(Protocol):
    """What is needed of `torch.UntypedStorage`."""

    _cdata: int

    def data_ptr(self) -> int:
        """The host address where it begins."""
        ...

    def nbytes(self) -> int:
        """Its size."""
        ...

    def _weak_ref(self) -> int: ...
    @classmethod
    def _free_weak_ref(cls, pointer: int) -> None: ...
    @classmethod
    def _new_with_weak_ptr(cls, pointer: int) -> UntypedStorage | None: ...


class Tensor(Protocol):
    """What is needed of `torch.Tensor`."""

    @property
    def device(self) -> object:
        """Where the elements lie."""
        ...

    @property
    def is_cpu(self) -> bool:
        """Whether they lie in the host's memory."""
        ...

    @property
    def is_meta(self) -> bool:
        """Whether there is no data."""
        ...

    @property
    def layout(self) -> object:
        """Dense (`torch.strided`) or a kind of sparse."""
        ...

    @property
    def dtype(self) -> object:
        """The element type."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        ...

    def element_size(self) -> int:
        """Bytes of an element."""
        ...

    def stride(self) -> tuple[int, ...]:
        """Elements from one to the next along each axis."""
        ...

    def storage_offset(self) -> int:
        """Elements before the first one in the storage."""
        ...

    def data_ptr(self) -> int:
        """The host address of the first element."""
        ...

    def untyped_storage(self) -> UntypedStorage:
        """What owns the memory."""
        ...
