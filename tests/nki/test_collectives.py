"""Collectives over ranks: each against what numpy makes of all ranks' arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import pytest
from one_kernel import F32, Array, same, tile

import triptych as tt
from triptych.core.errors import ArgumentError, NkiError
from triptych.languages.nki import collectives as nccl
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki
from triptych.languages.nki.tracing.tensors import NkiTensor

RANKS = 4
ALL = nccl.ReplicaGroup([list(range(RANKS))])
HALVES = nccl.ReplicaGroup([[0, 2], [3, 1]])
DATA = np.random.default_rng(13).integers(-9, 10, (RANKS, 8, 6)).astype(F32)


def on_ranks(body: Callable[[NkiTensor, NkiTensor], object], shape: Sequence[int], data: Array = DATA) -> Array:
    """What `body(out, a)` leaves in the `out` of each rank."""

    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(tuple(shape), dtype=a.dtype, buffer=nl.shared_hbm)
        body(out, a)
        return out

    with tt.profile(chip="trn2") as profile:
        found = cast(Array, nki.jit(kernel).on_ranks(RANKS)(data))
    assert profile.launches[-1].findings == ()
    return found


@pytest.mark.parametrize("operation", [nl.add, nl.maximum, nl.minimum])
def test_all_reduce(operation: Callable[..., object]) -> None:
    found = on_ranks(lambda out, a: nccl.all_reduce([a], [out], ALL, operation), (8, 6))
    reducers = {"add": np.sum, "maximum": np.max, "minimum": np.min}
    same(found, np.broadcast_to(reducers[operation.__name__](DATA, axis=0), DATA.shape))


def test_all_reduce_of_several_groups_in_sbuf() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        held = tile(8, 6)
        nisa.dma_copy(held, a)
        nccl.all_reduce([held], [held], HALVES, nl.add)
        nisa.dma_copy(out, held)

    found = on_ranks(body, (8, 6))
    same(found[0], DATA[0] + DATA[2])
    same(found[3], DATA[1] + DATA[3])


def test_all_gather() -> None:
    same(on_ranks(lambda out, a: nccl.all_gather([a], [out], ALL, 0), (32, 6))[2], DATA.reshape(32, 6))
    found = on_ranks(lambda out, a: nccl.all_gather([a], [out], HALVES, 0), (16, 6))
    same(found[1], np.concatenate([DATA[3], DATA[1]]))


def test_all_gather_along_the_columns_of_tiles() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        held, wide = tile(8, 6), tile(8, 24)
        nisa.dma_copy(held, a)
        nccl.all_gather([held], [wide], ALL, 1)
        nisa.dma_copy(out, wide)

    same(on_ranks(body, (8, 24))[3], np.concatenate(list(DATA), axis=1))


def test_reduce_scatter() -> None:
    found = on_ranks(lambda out, a: nccl.reduce_scatter([a], [out], ALL, 0, nl.add), (2, 6))
    same(found, DATA.sum(axis=0).reshape(4, 2, 6))


def test_all_to_all() -> None:
    found = on_ranks(lambda out, a: nccl.all_to_all([a], [out], ALL, 0), (8, 6))
    same(found, DATA.reshape(4, 4, 2, 6).transpose(1, 0, 2, 3).reshape(4, 8, 6))


def test_collective_permute_leaves_what_is_no_target() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.dma_copy(out, a)
        nccl.collective_permute([a], [out], [(0, 1), (1, 3)])

    found = on_ranks(body, (8, 6))
    same(found, np.stack([DATA[0], DATA[0], DATA[2], DATA[1]]))


def test_a_ring() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        between = nl.ndarray((8, 6), dtype=a.dtype, buffer=nl.shared_hbm)
        nccl.collective_permute_implicit([[a]], [[between]], ALL)
        nccl.collective_permute_implicit_reduce([[a]], [[between]], [[out]], ALL, nl.add)

    found = on_ranks(body, (8, 6))
    same(found, np.stack([DATA[rank - 1] + DATA[rank - 2] for rank in range(RANKS)]))


def test_ranks_are_registers() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        del a
        held = tile(1, 1, dtype=nl.int32)
        for column, register in enumerate(
            [
                nccl.rank_id(),
                *(nccl.collective_permute_implicit_current_processing_rank_id(i, HALVES) for i in range(2)),
            ]
        ):
            nisa.register_store(held, register)
            nisa.dma_copy(out[0:1, column : column + 1], held)

    same(on_ranks(body, (1, 3))[:, 0], np.array([[0, 0, 2], [1, 1, 3], [2, 2, 0], [3, 3, 1]]))


def test_what_was_reduced_before_is_no_race() -> None:
    """A collective orders the ranks: each reads its own tensors behind it."""

    def body(out: NkiTensor, a: NkiTensor) -> None:
        total = nl.ndarray((8, 6), dtype=a.dtype, buffer=nl.shared_hbm)
        nccl.all_reduce([a], [total], ALL, nl.add)
        held = tile(8, 6)
        nisa.dma_copy(held, total)
        nisa.tensor_scalar(held, held, nl.multiply, 0.25)
        nisa.dma_copy(out, held)

    same(on_ranks(body, (8, 6)), np.broadcast_to(DATA.mean(axis=0), DATA.shape))


REFUSED: list[tuple[Callable[[NkiTensor, NkiTensor], object], str]] = [
    (lambda out, a: nccl.all_reduce([a], [out], nccl.ReplicaGroup([[0, 1], [1]]), nl.add), "lists of different"),
    (lambda out, a: nccl.all_reduce([a], [out], nccl.ReplicaGroup([[0, 9]]), nl.add), "different ranks below 4"),
    (lambda out, a: nccl.all_reduce([a], [out], nccl.ReplicaGroup([[1, 2]]), nl.add), "rank 0 is in no list"),
    (lambda out, a: nccl.all_reduce([a], [out], ALL, nl.multiply), "op is 'multiply'"),
    (lambda out, a: nccl.all_gather([a], [out], ALL, 0),
     "48 elements; expected 192"),
    (lambda out, a: nccl.all_gather([a], [out], ALL, 1), "collective_dim is 1; expected 0 for tensors in HBM"),
    (lambda out, a: nccl.reduce_scatter([a[0:6, :]], [out], ALL, 0, nl.add), "6 elements along axis 0; 4 ranks"),
    (lambda out, a: nccl.collective_permute([a], [out], [(0, 1), (2, 1)]), "the target of several sources"),
    (lambda out, a: nccl.collective_permute([a], [out], [(0, 4)]), "below 4"),
    (lambda out, a: nccl.all_reduce([a], [], ALL, nl.add), "0 tensors"),
    (lambda out, a: nccl.all_reduce([a], [tile(8, 6)], ALL, nl.add), "different memories"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), REFUSED)
def test_refused(body: Callable[[NkiTensor, NkiTensor], object], message: str) -> None:
    with pytest.raises(NkiError, match=message):
        on_ranks(body, (8, 6))


def test_arrays_have_an_axis_of_ranks() -> None:
    with pytest.raises(ArgumentError, match=r"has the shape \[3, 8, 6\]; on 4 ranks its first axis must be theirs"):
        on_ranks(lambda out, a: nisa.dma_copy(out, a), (8, 6), DATA[:3])
