"""Where the functions of this folder run: triptych's machine, whether or not its Triton driver is active already."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from triptych.chips import GpuChip
from triptych.execution.arrays import Array, empty
from triptych.execution.profile import active_chip
from triptych.languages.triton.activation import activated
from triptych.languages.triton.internals import allocator


@contextmanager
def machine() -> Generator[None]:
    """Triton kernels of the block run on the chip and the target in force, with memory for descriptors they make."""
    with activated(), allocator(_allocate):
        yield


def _allocate(size: int, alignment: int, stream: object) -> Array:
    """Bytes of device memory; every allocation is aligned to 256 of them, and Triton asks for 128 at most."""
    return empty(size, "u8")


def multiprocessors() -> int:
    """Those of the chip in force, for grids that just fill it."""
    chip = active_chip("gpu")
    assert isinstance(chip, GpuChip)
    return chip.sm_count
