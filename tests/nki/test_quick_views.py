"""Views by slices, `nl.ds`, whole numbers and loop indices name the elements that numpy's same index does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from one_kernel import tile

from triptych.core.errors import NkiError, NkiLimitError
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.tracing.tensors import NkiTensor

SHAPE = (6, 5, 4, 3)
Key = tuple[Any, ...]
EVERYTHING: tuple[Key, Key] = ((Ellipsis,), (slice(None),))


def keys(random: np.random.Generator) -> Iterator[tuple[Key, Key]]:
    """An index of NKI, and numpy's."""
    for _ in range(300):
        ours: list[Any] = []
        numpys: list[Any] = []
        for extent in SHAPE[: random.integers(1, len(SHAPE) + 1)]:
            first, end = sorted(random.choice(extent + 1, 2, replace=False).tolist())
            whole, number = slice(first, end), int(random.integers(extent))
            choices = [
                (whole, whole), (nl.ds(first, end - first), whole), (number, number), (slice(None), slice(None)),
                (slice(first, None), slice(first, None)), (slice(None, end), slice(None, end)), (slice(-1, None),) * 2,
                (slice(first, end, 2), slice(first, end, 2)), (number - extent, number), (np.int32(number), number),
            ]  # fmt: skip
            if first == extent:
                continue
            mine, its = choices[random.integers(len(choices))]
            ours.append(mine)
            numpys.append(its)
        yield (tuple(ours), tuple(numpys)) if ours else EVERYTHING


def place(view: NDArray[Any], array: NDArray[Any]) -> tuple[int, tuple[int, ...], list[int]]:
    """Offset, shape and the steps of axes that are walked, in elements."""
    offset = (view.__array_interface__["data"][0] - array.__array_interface__["data"][0]) // array.itemsize
    steps = [stride // array.itemsize for stride, count in zip(view.strides, view.shape, strict=True) if count > 1]
    return offset, view.shape, steps


def place_of(view: NkiTensor) -> tuple[int, tuple[int, ...], list[int]]:
    return view.offset, view.shape, [step for step, count in zip(view.strides, view.shape, strict=True) if count > 1]


def test_of_tensors_in_hbm() -> None:
    """A whole number drops its axis."""
    array = np.zeros(SHAPE, np.float32)

    @nki.jit
    def kernel(a: NkiTensor) -> object:
        for ours, numpys in keys(np.random.default_rng(5)):
            assert place_of(a[ours[0] if len(ours) == 1 else ours]) == place(array[(*numpys, ...)], array), (
                ours,
                numpys,
            )
        out = nl.ndarray((6, 60), dtype=a.dtype, buffer=nl.shared_hbm)
        held = tile(6, 60)
        nisa.dma_copy(dst=held, src=a.reshape((6, 60)))
        nisa.dma_copy(dst=out, src=held)
        return out

    kernel.capture(array)


def test_of_tiles() -> None:
    """A whole number keeps the axis of the partitions; two axes are left at least."""
    array = np.zeros(SHAPE, np.float32)

    @nki.jit
    def kernel(a: NkiTensor) -> object:
        held = tile(*SHAPE)
        for ours, numpys in keys(np.random.default_rng(6)):
            first = numpys[0]
            kept = (slice(first, first + 1), *numpys[1:]) if isinstance(first, int) else numpys
            expected = array[kept] if array[kept].ndim > 1 else array[kept][:, np.newaxis]
            assert place_of(held[ours]) == place(expected, array), (ours, numpys)
        out = nl.ndarray(SHAPE, dtype=a.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=held, src=a)
        nisa.dma_copy(dst=out, src=held)
        return out

    kernel.capture(array)


def test_by_the_index_of_a_loop() -> None:
    """Its iterations are at their own places."""

    @nki_beta1.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        for block in nl.affine_range(a.shape[0]):
            nl.store(out[block], value=nl.multiply(nl.load(a[block, :, 0:8]), 2.0))
        return out

    a = np.random.default_rng(7).standard_normal((3, 16, 8)).astype(np.float32)
    np.testing.assert_array_equal(kernel(a), a * 2)


@pytest.mark.parametrize("key", [(6,), (-7,), (slice(0, 7),), (nl.ds(4, 3),), (0, 5), (0, 0, 0, 3)])
def test_outside_of_an_axis(key: Key) -> None:
    """It is told behind views that are inside too."""

    @nki.jit
    def kernel(a: NkiTensor) -> object:
        assert a[0:6, 0].shape == (6, 4, 3)
        return a[key]

    with pytest.raises(NkiLimitError, match="Out-of-bound access"):
        kernel.capture(np.zeros(SHAPE, np.float32))


@pytest.mark.parametrize(
    "key", [(True,), (1.0,), (slice(0.0, 2.0),), (slice(False, True),), (slice(0, 4, 0),), (None,)]
)
def test_what_is_no_index(key: Key) -> None:
    """Truth values and fractions are none, though they are equal to whole numbers."""

    @nki.jit
    def kernel(a: NkiTensor) -> object:
        assert a[1:2, 0:1].shape == (1, 1, 4, 3)
        return a[key]

    with pytest.raises(NkiError):
        kernel.capture(np.zeros(SHAPE, np.float32))
