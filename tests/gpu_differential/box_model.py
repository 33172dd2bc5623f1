"""What a box of a tensor is in shared memory, by the manuals' rules alone (PTX manual, 5.5): a model that runs no code.

Axes are in the order of arrays, the innermost last.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK = 16
SPANS = {"none": 0, "32B": 32, "64B": 64, "128B": 128}


@dataclass(frozen=True, slots=True)
class Box:
    """A box of an array at the position of its first element along each axis."""

    position: tuple[int, ...]
    extents: tuple[int, ...]
    """As the tensor map has them: of an axis with a step, that many elements are passed over."""
    steps: tuple[int, ...]
    swizzle: str

    @property
    def counts(self) -> tuple[int, ...]:
        """Elements along each axis; the last one knows no step."""
        rows = (-(-extent // step) for extent, step in zip(self.extents[:-1], self.steps[:-1], strict=True))
        return (*rows, self.extents[-1])

    def row_bytes(self, element_bytes: int) -> int:
        """Bytes of a row."""
        return self.extents[-1] * element_bytes

    def pitch(self, element_bytes: int) -> int:
        """From one row to the next."""
        return SPANS[self.swizzle] or self.row_bytes(element_bytes)

    def places(self, element_bytes: int, start: int) -> NDArray[np.int64]:
        """Where each byte of each row lies in the block's shared memory, (rows, bytes of a row)."""
        rows = int(np.prod(self.counts[:-1]))
        flat = start + np.arange(rows)[:, None] * self.pitch(element_bytes) + np.arange(self.row_bytes(element_bytes))
        if self.swizzle == "none":
            return flat
        chunks = SPANS[self.swizzle] // CHUNK
        line, within = flat // 128, flat % CHUNK
        chunk = flat // CHUNK
        swapped = chunk // chunks * chunks + (chunk % chunks ^ line % chunks)
        return swapped * CHUNK + within

    def elements(self, shape: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The indices of its elements, (elements, axes), row after row; and which of them the array has."""
        steps = (*self.steps[:-1], 1)
        along = [[x + i * step for i in range(n)] for x, n, step in zip(self.position, self.counts, steps, strict=True)]
        indices = np.array(list(product(*along)), np.int64)
        return indices, np.all((indices >= 0) & (indices < np.array(shape)), axis=1)


def loaded(array: NDArray[Any], box: Box, start: int, image: NDArray[np.uint8], fill: bytes) -> NDArray[np.uint8]:
    """The block's shared memory after a load of the box to `start`."""
    indices, inside = box.elements(array.shape)
    size = array.dtype.itemsize
    row = np.frombuffer(fill * (size * len(indices) // len(fill)), np.uint8).reshape(len(indices), size).copy()
    found = np.ascontiguousarray(array[tuple(indices[inside].T)])
    row[inside] = found.view(np.uint8).reshape(-1, size)
    result = image.copy()
    result[box.places(size, start)] = row.reshape(-1, box.row_bytes(size))
    return result


def stored(array: NDArray[Any], box: Box, start: int, image: NDArray[np.uint8]) -> NDArray[Any]:
    """The array after a store of the box from `start`."""
    indices, inside = box.elements(array.shape)
    size = array.dtype.itemsize
    values = np.ascontiguousarray(image[box.places(size, start)]).reshape(-1, size)
    result = array.copy()
    result[tuple(indices[inside].T)] = np.ascontiguousarray(values[inside]).view(array.dtype)[:, 0]
    return result
