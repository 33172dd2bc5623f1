"""`neuronxcc.nki.compiler`: where the tiles of Beta 1 lie, and switches of the compiler that there is none of here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from triptych.languages.nki.language_functions.loops import no_reorder
from triptych.languages.nki.language_functions.renaming import also_called
from triptych.languages.nki.tracing.buffers import Allocation, Buffer
from triptych.languages.nki.tracing.buffers import psum as _psum
from triptych.languages.nki.tracing.buffers import sbuf as _sbuf
from triptych.languages.nki.tracing.indexing import refuse

__all__ = [
    "enable_stack_allocator",
    "force_auto_alloc",
    "multi_buffer",
    "no_reorder",
    "psum",
    "sbuf",
    "skip_middle_end_transformations",
]

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def _flat(index: tuple[int, ...], counts: tuple[int, ...]) -> int:
    """The place of a block among `counts` tiles that its indices wrap around in."""
    place = 0
    if len(index) != len(counts):
        if index:
            raise refuse(f"{counts} tiles for a tensor of {len(index)} block dimensions: give as many numbers")
        return 0
    for one, count in zip(index, counts, strict=True):
        place = place * count + one % count
    return place


class sbuf:  # the language's own name
    """Places in SBUF, for `buffer=`."""

    @staticmethod
    def auto_alloc() -> Buffer:
        """Where the compiler likes."""
        return _sbuf

    @staticmethod
    def alloc(func: Callable[[tuple[int, ...], int, int], tuple[int, int]]) -> Buffer:
        """`func(block, partitions, bytes)` gives the first partition and the byte of each block."""
        return Buffer("sbuf", _sbuf.space, allocation=func)

    @staticmethod
    def mod_alloc(
        *,
        base_addr: int,
        base_partition: int = 0,
        num_par_tiles: tuple[int, ...] = (),
        num_free_tiles: tuple[int, ...] = (),
    ) -> Buffer:
        """Blocks one behind the other from `base_addr` on, over and over again in so many tiles."""

        def place(block: tuple[int, ...], partitions: int, size: int) -> tuple[int, int]:
            ones = (1,) * len(block)
            row, column = _flat(block, num_par_tiles or ones), _flat(block, num_free_tiles or ones)
            return base_partition + row * partitions, base_addr + column * size

        return Buffer("sbuf", _sbuf.space, allocation=place)


class psum:  # the language's own name
    """Places in PSUM, for `buffer=`."""

    @staticmethod
    def auto_alloc() -> Buffer:
        """Where the compiler likes."""
        return _psum

    @staticmethod
    def alloc(func: Callable[[tuple[int, ...], int, int], tuple[int, int, int]]) -> Buffer:
        """`func(block, partitions, bytes)` gives the bank, the first partition and the byte in the bank of a block."""
        return Buffer("psum", _psum.space, allocation=_in_bank(func))

    @staticmethod
    def mod_alloc(
        *,
        base_bank: int,
        base_addr: int = 0,
        base_partition: int = 0,
        num_bank_tiles: tuple[int, ...] = (),
        num_par_tiles: tuple[int, ...] = (),
        num_free_tiles: tuple[int, ...] = (),
    ) -> Buffer:
        """Blocks in banks from `base_bank` on, over and over again in so many of them."""

        def place(block: tuple[int, ...], partitions: int, size: int) -> tuple[int, int, int]:
            ones = (1,) * len(block)
            bank = base_bank + _flat(block, num_bank_tiles or ones)
            row, column = _flat(block, num_par_tiles or ones), _flat(block, num_free_tiles or ones)
            return bank, base_partition + row * partitions, base_addr + column * size

        return Buffer("psum", _psum.space, allocation=_in_bank(place))


_BANK_BYTES = 2048


def _in_bank(func: Callable[[tuple[int, ...], int, int], tuple[int, int, int]]) -> Allocation:
    """The byte of a partition in the place of a bank and the byte in it."""

    def place(block: tuple[int, ...], partitions: int, size: int) -> tuple[int, int]:
        bank, partition, byte = func(block, partitions, size)
        return partition, bank * _BANK_BYTES + byte

    return place


def enable_stack_allocator(func: Kernel | None = None, **_: object) -> Kernel | Callable[[Kernel], Kernel]:
    """A switch of AWS's compiler: tiles lie where they fit here anyway."""
    return _same if func is None else func


def force_auto_alloc(func: Kernel) -> Kernel:
    """A switch of AWS's compiler: tiles lie where they fit here anyway."""
    return func


def skip_middle_end_transformations(func: Kernel) -> Kernel:
    """A switch of AWS's compiler: nothing is transformed here."""
    return func


@also_called(factor="count")
def multi_buffer(count: int) -> int:
    """A directive of loops, how many of its tiles there are at a time: nothing overlaps here."""
    return count


def _same(func: Kernel) -> Kernel:
    return func
