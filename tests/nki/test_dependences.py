"""Which iterations of `nl.affine_range` need each other: what spans, cells and elements say, in nests of loops."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from one_kernel import random

from triptych.core.errors import NkiError
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki_beta1
from triptych.languages.nki.tracing.tensors import NkiTensor

Loop = Callable[[int], range]
ROWS, COLUMNS = nl.arange(32)[:, None], nl.arange(4)[None, :]


def columns_apart(a: NkiTensor, step: int, outer: Loop, inner: Loop) -> NkiTensor:
    """Iterations write columns of a tile that lie between those of others: `step` tells whether they touch."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    held = nl.ndarray((32, 48), dtype=a.dtype, buffer=nl.sbuf)
    for i in outer(2):
        for j in inner(3):
            held[ROWS, 24 * i + j + step * COLUMNS] = nl.load(a[ROWS, 24 * i + j + step * COLUMNS])
    nl.store(out, held)
    return out


def read_ahead(a: NkiTensor, ahead: int, outer: Loop, inner: Loop) -> NkiTensor:
    """Each iteration reads its own row of an array, or the next one's, and writes its own."""
    out = nl.ndarray((7, *a.shape), dtype=a.dtype, buffer=nl.shared_hbm)
    held = nl.ndarray((9, nl.par_dim(32), 48), dtype=a.dtype, buffer=nl.sbuf)
    for i in range(6, 9):
        held[i] = nl.load(a)
    for i in outer(2):
        for j in inner(3):
            held[3 * i + j] = nl.load(a)
            nl.store(out[3 * i + j], held[3 * i + j + ahead])
    nl.store(out[6], held[6])
    return out


AFFINE, ORDERED = nl.affine_range, nl.sequential_range


@pytest.mark.parametrize(
    ("kernel", "step", "outer", "inner", "clash"),
    [
        (columns_apart, 3, AFFINE, AFFINE, None),
        (columns_apart, 1, AFFINE, AFFINE, "1 writes elements of `sbuf"),
        (columns_apart, 1, AFFINE, ORDERED, None),
        (read_ahead, 0, AFFINE, AFFINE, None),
        (read_ahead, 1, AFFINE, AFFINE, "1 writes elements of `sbuf"),
        (read_ahead, 1, ORDERED, ORDERED, None),
        (read_ahead, 1, AFFINE, ORDERED, "1 writes elements of `sbuf"),  # the last of one, the first of the next
        (read_ahead, 3, ORDERED, AFFINE, None),
        (read_ahead, 3, AFFINE, ORDERED, "1 writes elements of `sbuf"),
    ],
)
def test_iterations(
    kernel: Callable[[NkiTensor, int, Loop, Loop], NkiTensor], step: int, outer: Loop, inner: Loop, clash: str | None
) -> None:
    def body(a: NkiTensor) -> NkiTensor:
        return kernel(a, step, outer, inner)

    captured = nki_beta1.jit(body).capture
    if clash is None:
        assert captured(random(32, 48)).kernel == "body"
        return
    with pytest.raises(NkiError, match=f"err_unexpected_output_dependencies.*: {clash}"):
        captured(random(32, 48))


def test_a_reader_of_a_round_before_counts() -> None:
    """Readers in several rounds of an ordered loop: the one that an independent loop parts from the writer is found."""

    def body(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((6, *a.shape), dtype=a.dtype, buffer=nl.shared_hbm)
        held = nl.load(a)
        for i in nl.sequential_range(2):
            for j in nl.affine_range(3):
                nl.store(out[3 * i + j], held)
                if (i, j) == (1, 2):
                    held[...] = nl.multiply(held, 2.0)
        return out

    with pytest.raises(NkiError, match="2 writes elements of `load of a` that another one uses"):
        nki_beta1.jit(body).capture(random(32, 48))
