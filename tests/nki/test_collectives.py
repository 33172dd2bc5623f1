"""Collectives over ranks: each against what numpy makes of all ranks' arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray
from one_kernel import F32, Array, filled, same, tile

import triptych as tt
from triptych.core.errors import ArgumentError, NkiError
from triptych.core.launches import Finding
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
    (lambda out, a: nccl.all_reduce([a], [out], ALL, nl.add, priority=1), "priority= needs NeuronCore-v4"),
    (lambda out, a: nccl.all_to_all([tile(8, 6)], [tile(8, 6)], ALL, 0), r"must be in \['hbm'\], got sbuf"),
    (lambda out, a: nccl.collective_permute([tile(8, 6)], [tile(8, 6)], [(0, 1)]), "tensors must lie in HBM"),
    (lambda out, a: nccl.reduce_scatter([tile(8, 24)], [tile(8, 6)], ALL, 1, nl.add), "dim is 1; expected 0"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), REFUSED)
def test_refused(body: Callable[[NkiTensor, NkiTensor], object], message: str) -> None:
    with pytest.raises(NkiError, match=message):
        on_ranks(body, (8, 6))


def test_arrays_have_an_axis_of_ranks() -> None:
    with pytest.raises(ArgumentError, match=r"has the shape \[3, 8, 6\]; on 4 ranks its first axis must be theirs"):
        on_ranks(lambda out, a: nisa.dma_copy(out, a), (8, 6), DATA[:3])


# Chunks of sizes that are known when they run


def metadata(seed: int, rows: int = 3, most: int = 9) -> NDArray[np.uint32]:
    """Of each rank so many rows: what goes to each rank of the group, from where in 48 elements on; then sevens."""
    random = np.random.default_rng(seed)
    made = np.full((RANKS, rows, RANKS), 7, np.uint32)
    made[:, 0] = random.integers(0, most, (RANKS, RANKS))
    made[:, 1] = random.integers(0, 48 - most, (RANKS, RANKS))
    return made


def exchange(
    body: Callable[[NkiTensor, NkiTensor, NkiTensor], object], meta: NDArray[np.uint32], chip: str = "trn2"
) -> tuple[Array, Array, Sequence[Finding]]:
    """What `body(out, a, metadata)` leaves in an `out` of 44 elements of -1, and in the metadata, of each rank."""

    def kernel(a: NkiTensor, given: NkiTensor) -> tuple[NkiTensor, NkiTensor]:
        out = nl.ndarray((4, 11), dtype=a.dtype, buffer=nl.shared_hbm)
        rows = nl.ndarray(given.shape, dtype=given.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, filled(4, 11, value=-1.0))
        nisa.dma_copy(rows, given)
        body(out, a, rows)
        return out, rows

    with tt.profile(chip=chip) as profile:
        out, rows = cast("tuple[Array, Array]", nki.jit(kernel).on_ranks(RANKS)(DATA, meta))
    return out.reshape(RANKS, 44), rows, profile.launches[-1].findings


def test_all_to_all_v() -> None:
    meta = metadata(1)
    out, rows, findings = exchange(lambda out, a, rows: nccl.all_to_all_v([a], [out], ALL, rows), meta)
    expected, flat = np.full((RANKS, 44), -1, F32), DATA.reshape(RANKS, 48)
    for source, target in np.ndindex(RANKS, RANKS):
        count, first = meta[source, :2, target]
        expected[target, 11 * source : 11 * source + count] = flat[source, first : first + count]
    assert findings == ()
    same(out, expected)
    same(rows[:, :2], meta[:, :2])
    same(rows[:, 2], meta[:, 0].T)


def test_all_to_all_v_of_groups_from_sbuf_with_counts_that_are_known() -> None:
    def body(out: NkiTensor, a: NkiTensor, rows: NkiTensor) -> None:
        held = tile(1, 3, 2, dtype=nl.uint32)
        nisa.dma_copy(held, rows[:, 0:2])
        nccl.all_to_all_v([a], [out], HALVES, held, recv_counts_known=True)
        nisa.dma_copy(rows[:, 0:2], held)

    meta = metadata(2)
    out, rows, _ = exchange(body, meta)
    flat = DATA.reshape(RANKS, 48)
    for rank, place, members in ((0, 0, (0, 2)), (2, 1, (0, 2)), (3, 0, (3, 1)), (1, 1, (3, 1))):
        for at, source in enumerate(members):
            count, first = meta[source, :2, place]
            same(out[rank, 22 * at : 22 * at + count], flat[source, first : first + count])
    same(rows, meta)


def test_all_to_all_v_places_chunks_where_it_is_told() -> None:
    meta = metadata(3, rows=4)
    meta[:, 3] = np.array([33, 0, 22, 11])

    def body(out: NkiTensor, a: NkiTensor, rows: NkiTensor) -> None:
        nccl.all_to_all_v([a], [out], ALL, rows, has_rdispls=True)

    out, rows, _ = exchange(body, meta, "trn3")
    flat = DATA.reshape(RANKS, 48)
    for source, target in np.ndindex(RANKS, RANKS):
        (count, first), place = meta[source, :2, target], meta[target, 3, source]
        same(out[target, place : place + count], flat[source, first : first + count])
    same(rows[:, 2], meta[:, 0].T)
    with pytest.raises(NkiError, match="has_rdispls=True needs NeuronCore-v4"):
        exchange(body, meta)


def test_all_gather_v() -> None:
    meta = metadata(4)
    out, rows, findings = exchange(lambda out, a, rows: nccl.all_gather_v([a], [out], ALL, rows), meta)
    expected, flat = np.full((RANKS, 44), -1, F32), DATA.reshape(RANKS, 48)
    for source in range(RANKS):
        count, first = meta[source, :2, 0]
        expected[:, 11 * source : 11 * source + count] = flat[source, first : first + count]
    assert findings == ()
    same(out, expected)
    same(rows[:, 2], np.broadcast_to(meta[:, 0, 0], (RANKS, RANKS)))


@pytest.mark.parametrize(
    ("row", "value", "message"),
    [(0, 12, "rank 2 sends 12 elements to 22 of dst, where 11 have room"),
     (1, 47, "rank 2 sends 3 elements at 47 of src, which has 48")],
)  # fmt: skip
def test_a_chunk_without_room_is_left_out(row: int, value: int, message: str) -> None:
    meta = metadata(5)
    meta[2, :2, 1] = 3, 0
    meta[2, row, 1] = value
    out, _, findings = exchange(lambda out, a, rows: nccl.all_to_all_v([a], [out], ALL, rows), meta)
    assert [one.message for one in findings] == [f"all_to_all_v: {message}: they are left out"]
    same(out[1, 22:33], np.full(11, -1))


def test_nothing_sent_needs_no_room() -> None:
    meta = metadata(6)
    meta[2, :2, 1] = 0, 1 << 20
    _, _, findings = exchange(lambda out, a, rows: nccl.all_to_all_v([a], [out], ALL, rows), meta)
    assert findings == ()


def test_parts_for_all_ranks_are_equal() -> None:
    def body(out: NkiTensor, a: NkiTensor, rows: NkiTensor) -> None:
        nccl.all_to_all_v([a], [out[0:3, :]], ALL, rows)

    with pytest.raises(NkiError, match="has 33 elements; 4 ranks have equal parts of it"):
        exchange(body, metadata(7))


def test_counts_that_nobody_wrote() -> None:
    def body(out: NkiTensor, a: NkiTensor, rows: NkiTensor) -> None:
        del rows
        unwritten = nl.ndarray((3, 4), dtype=nl.uint32, buffer=nl.shared_hbm, name="unwritten")
        nccl.all_to_all_v([a], [out], ALL, unwritten)

    *_, findings = exchange(body, metadata(6))
    assert any("depends on `unwritten`, which was never written" in one.message for one in findings)


REFUSED_V: list[tuple[Callable[[NkiTensor, NkiTensor, NkiTensor], object], str]] = [
    (lambda out, a, rows: nccl.all_gather_v([a], [out], HALVES, rows[:, 0:2]), "must lie one behind the other"),
    (lambda out, a, rows: nccl.all_gather_v([a], [out], HALVES, nl.ndarray((3, 2), nl.uint32, nl.hbm)),
     "2 ranks; expected 4"),
    (lambda out, a, rows: nccl.all_gather_v([a], [out], ALL, rows, has_rdispls=True), "not supported by any release"),
    (lambda out, a, rows: nccl.all_to_all_v([a], [out], ALL, rows, has_rdispls=True),
     r"metadata_tensor is uint32 \[3, 4\]; expected uint32 \[4, 4\]"),
    (lambda out, a, rows: nccl.all_to_all_v([a], [out], ALL, a), "is float32 .* expected uint32"),
    (lambda out, a, rows: nccl.all_to_all_v([a, a], [out, out], ALL, rows), "2 tensors; expected 1"),
    (lambda out, a, rows: nccl.all_to_all_v([tile(8, 6)], [out], ALL, rows), r"src must be in \['hbm'\], got sbuf"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), REFUSED_V)
def test_refused_chunks(body: Callable[[NkiTensor, NkiTensor, NkiTensor], object], message: str) -> None:
    with pytest.raises(NkiError, match=message):
        exchange(body, metadata(7))


def test_a_rank_may_reduce_into_what_it_reduces() -> None:
    """Every rank's sum is of what all had before."""

    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        moved = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
        both = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.hbm)
        nisa.dma_copy(moved, a)
        nisa.dma_copy(both, moved)
        nccl.all_reduce(srcs=[both], dsts=[both], replica_group=nccl.ReplicaGroup([[0, 1, 2]]), op=nl.add)
        nisa.dma_copy(moved, both)
        nisa.dma_copy(out, moved)
        return out

    a = np.random.default_rng(3).standard_normal((3, 8, 8)).astype(F32)
    with tt.profile(chip="trn2"):
        found = nki.jit(kernel).on_ranks(3)(a)
    np.testing.assert_allclose(found, np.tile(a.sum(0), (3, 1, 1)), rtol=1e-6)


def test_a_rank_may_return_another_shape() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        moved = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(moved, a)
        nisa.dma_copy(out, moved)
        return out.reshape((4, 2, 6))

    a = np.random.default_rng(4).standard_normal((3, 8, 6)).astype(F32)
    with tt.profile(chip="trn2"):
        same(nki.jit(kernel).on_ranks(3)(a), a.reshape(3, 4, 2, 6))


def test_tensors_of_a_rank_are_there() -> None:
    """Kernels ask `if tensor:` of one that may be None, also where a rank's is a part of all ranks' array."""

    def body(out: NkiTensor, a: NkiTensor) -> None:
        assert a
        assert out
        nisa.dma_copy(out, a)

    same(on_ranks(body, (8, 6)), DATA)
