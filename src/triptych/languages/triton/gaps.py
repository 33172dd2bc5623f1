"""Arrays with gaps: Triton passes pointers, so that a kernel which is not told the strides reads the neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import cast

import numpy as np

from triptych.core.handles import Handle
from triptych.core.plan import Launch


def remarks_on_gaps(kernel: str, launch: Launch, values: Sequence[object]) -> tuple[str, ...]:
    """A sentence for the first array, by its name, with gaps and with strides that are not among the integers passed.

    `values` are all that the author passed, compile-time constants too. Costs below a microsecond where none has gaps.
    """
    for name, handle in zip(launch.names, launch.arguments, strict=False):  # behind those with names are the scratches
        if isinstance(handle, Handle):
            strides = _telling_strides(handle.shape, handle.strides, handle.dtype.bytes)
            if strides and not strides <= {*_integers(values)}:
                steps = tuple(stride // handle.dtype.bytes for stride in handle.strides)
                return (
                    f"{kernel} got the address of `{name}`, an array of shape {handle.shape} with gaps, and not its"
                    f" strides {steps}: as on a GPU, it may read what lies between. Pass the strides, or a copy without"
                    " gaps.",
                )
    return ()


@lru_cache(maxsize=4096)
def _telling_strides(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> frozenset[int]:
    """Of an array with gaps the strides in elements of `size` bytes, but for 1, which needs no telling; else none."""
    dense = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent == 0:
            return frozenset()
        if extent > 1 and stride != dense * size:
            pairs = zip(shape, strides, strict=True)
            return frozenset(step // size for count, step in pairs if count > 1) - {1}
        dense *= extent
    return frozenset()


def _integers(values: Iterable[object]) -> Iterator[int]:
    for value in values:
        if isinstance(value, tuple | list):
            yield from _integers(cast("Sequence[object]", value))
        elif hasattr(value, "strides") and hasattr(value, "block_shape"):  # a descriptor has its own
            yield from _integers(cast("Sequence[object]", getattr(value, "strides")))  # noqa: B009
        elif isinstance(value, int | np.integer):
            yield int(cast("int", value))
