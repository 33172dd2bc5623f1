"""Kernels of one body: what it leaves in tiles, the message with which it is refused, the findings of its launch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

import triptych as tt
from triptych.core.errors import TriptychError
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.tracing.tensors import NkiTensor

Array = NDArray[Any]
Body = Callable[..., object]
Output = tuple[tuple[int, ...], Any]
F32 = np.float32


def random(*shape: int, seed: int = 80) -> NDArray[np.float32]:
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


def tile(*shape: int, dtype: object = nl.float32, buffer: object = nl.sbuf) -> NkiTensor:
    """A new tile, of undefined contents."""
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def filled(*shape: int, dtype: object = nl.float32, value: float = 1.0) -> NkiTensor:
    """A new tile of one number."""
    made = tile(*shape, dtype=dtype)
    nisa.memset(made, value)
    return made


def loaded(array: NkiTensor) -> NkiTensor:
    """The tile of an array."""
    made = tile(*array.shape, dtype=array.dtype)
    nisa.dma_copy(made, array)
    return made


def run(body: Body, inputs: Sequence[Array], *outputs: Output, chip: str = "trn2") -> tuple[Array, ...]:
    """What `body(results…, tiles of the inputs…)` leaves in new SBUF tiles of the outputs' (shape, dtype)."""
    return run_kernel(body, inputs, *outputs, chip=chip)[0]


def run_kernel(
    body: Body, inputs: Sequence[Array], *outputs: Output, chip: str = "trn2", raw: bool = False
) -> tuple[tuple[Array, ...], Mapping[str, str]]:
    """The same, and the findings by check; `raw` gives the body the tensors in HBM, the results' too."""

    def kernel(*arrays: NkiTensor) -> object:
        stored = [nl.ndarray(shape, dtype=dtype, buffer=nl.shared_hbm) for shape, dtype in outputs]
        if raw:
            body(*stored, *arrays)
            return tuple(stored)
        results = [tile(*shape, dtype=dtype) for shape, dtype in outputs]
        body(*results, *(loaded(array) for array in arrays))
        for out, result in zip(stored, results, strict=True):
            nisa.dma_copy(out, result)
        return tuple(stored)

    with tt.profile(chip=chip) as profile:
        found: object = nki.jit(kernel)(*inputs)
    findings = {one.check: one.message for one in profile.launches[-1].findings}
    return cast("tuple[Array, ...]", found), findings


def refused(body: Callable[[], object], error: type[TriptychError], message: str, *, chip: str = "trn2") -> None:
    """The body is refused, in its own file, with a message that matches."""

    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, loaded(a))
        body()
        return out

    with tt.profile(chip=chip), pytest.raises(error) as caught:
        nki.jit(kernel).capture(np.zeros((1, 8), F32))
    assert re.search(message, str(caught.value)), str(caught.value)
    assert caught.value.where is not None
    assert "/triptych/languages/" not in caught.value.where.file


def accepted(body: Callable[[], object], *, chip: str = "trn2") -> None:
    """The body is traced."""

    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, loaded(a))
        body()
        return out

    with tt.profile(chip=chip):
        nki.jit(kernel).capture(np.zeros((1, 8), F32))


def run_beta1(kernel: Callable[..., object], *inputs: Array, grid: tuple[int, ...] = (1,)) -> Array:
    """What a kernel of Beta 1 returns, one array."""
    return cast(Array, nki_beta1.jit(kernel)[grid](*inputs))


def same(found: Array, expected: Array) -> None:
    """The same numbers, NaN too."""
    np.testing.assert_array_equal(np.asarray(found, np.float64), np.asarray(expected, np.float64))
