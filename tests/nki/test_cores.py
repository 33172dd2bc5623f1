"""Two cores of a logical NeuronCore: exchanges, barriers, races without them, and programs that wait for ever."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from one_kernel import F32, Array, random, run_beta1, same, tile

import triptych as tt
from triptych.core.errors import DeadlockError, NkiError
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.neuron.run.launch import load_trace


def on_two_cores(kernel: Callable[..., object], *inputs: Array, chip: str = "trn2") -> tuple[Array, dict[str, str]]:
    """What the kernel returns, and its findings."""
    with tt.profile(chip=chip) as profile:
        found = cast(Array, nki.jit(kernel)[2](*inputs))
    return found, {one.check: one.message for one in profile.launches[-1].findings}


def exchange(a: NkiTensor) -> NkiTensor:
    """out[i] = the half of the other core, sent, plus this core's."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    rows = nl.ds(core * 64, 64)
    mine, theirs, total = tile(64, 16), tile(64, 16), tile(64, 16)
    nisa.dma_copy(mine, a[rows, :])
    nisa.sendrecv(src=mine, dst=theirs, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
    nisa.tensor_tensor(total, mine, theirs, op=nl.add)
    nisa.dma_copy(out[rows, :], total)
    return out


def test_sendrecv() -> None:
    a = random(128, 16)
    found, findings = on_two_cores(exchange, a)
    same(found, np.tile(a[:64] + a[64:], (2, 1)))
    assert findings == {}


def swap_halves(a: NkiTensor, barrier: bool) -> NkiTensor:
    """Each core writes its half of a shared tensor and reads the other's."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    between = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    mine, other = nl.ds(core * 64, 64), nl.ds((1 - core) * 64, 64)
    held = tile(64, 16)
    nisa.dma_copy(held, a[mine, :])
    nisa.dma_copy(between[mine, :], held)
    if barrier:
        nisa.core_barrier(data=between, cores=(0, 1))
    nisa.dma_copy(held, between[other, :])
    nisa.dma_copy(out[mine, :], held)
    return out


def test_a_barrier_orders_stores_and_loads() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        return swap_halves(a, True)

    a = random(128, 16)
    found, findings = on_two_cores(kernel, a)
    same(found, np.concatenate([a[64:], a[:64]]))
    assert findings == {}


def test_without_a_barrier_it_is_a_race() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        return swap_halves(a, False)

    _, findings = on_two_cores(kernel, random(128, 16))
    assert "program 1 loads elements of `shared_hbm" in findings["racecheck"]


def test_undefined_data_stay_undefined_when_sent() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        core = nl.program_id(0)
        mine, theirs = tile(64, 16), tile(64, 16)
        if core == 0:
            nisa.dma_copy(mine, a[0:64, :])
        nisa.sendrecv(mine, theirs, 1 - core, 1 - core, 0)
        nisa.dma_copy(out[nl.ds(core * 64, 64), :], theirs)
        return out

    _, findings = on_two_cores(kernel, random(128, 16))
    assert "1024 of 1024 elements stored" in findings["initcheck"]


def unmatched(a: NkiTensor) -> NkiTensor:
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    held = tile(64, 16)
    nisa.dma_copy(held, a[nl.ds(core * 64, 64), :])
    if core == 0:
        nisa.core_barrier(data=out, cores=(0, 1))
    nisa.dma_copy(out[nl.ds(core * 64, 64), :], held)
    return out


def crossed(a: NkiTensor) -> NkiTensor:
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    held, got = tile(64, 16), tile(64, 16)
    nisa.dma_copy(held, a[nl.ds(core * 64, 64), :])
    nisa.sendrecv(held, got, 1 - core, 1 - core, pipe_id=core)
    nisa.dma_copy(out[nl.ds(core * 64, 64), :], got)
    return out


@pytest.mark.parametrize(
    ("kernel", "message"),
    [(unmatched, r"program 0 at core_barrier in line \d+; ended: 1"),
     (crossed, r"program 0 at sendrecv in line \d+, program 1 at sendrecv")],
)  # fmt: skip
def test_programs_that_wait_for_ever(kernel: Callable[..., object], message: str) -> None:
    with pytest.raises(DeadlockError, match=message):
        on_two_cores(kernel, random(128, 16))


def one(body: Callable[[NkiTensor], object]) -> Callable[[NkiTensor], NkiTensor]:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        body(out)
        return out

    return kernel


REFUSED: list[tuple[int, str, Callable[[NkiTensor], object], str]] = [
    (1, "trn2", lambda out: nisa.core_barrier(out, (0, 1)), "core_barrier: requires LNC degree >= 2"),
    (1, "trn2", lambda out: nisa.sendrecv(tile(8, 8), tile(8, 8), 0, 0, 0), "sendrecv: requires LNC degree >= 2"),
    (2, "trn2", lambda out: nisa.core_barrier(out, (0, 2)), "only .0, 1. can meet"),
    (2, "trn2", lambda out: nisa.core_barrier(nl.ndarray((8, 8), nl.float32, nl.hbm), (0, 1)), "no tensor of nl.sh"),
    (2, "trn2", lambda out: nisa.sendrecv(tile(8, 8), tile(8, 8), 2, 1, 0), "send_to_rank is 2"),
    (2, "trn2", lambda out: nisa.sendrecv(tile(8, 8), tile(8, 9), 1, 1, 0), "free total elements"),
    (2, "trn2", lambda out: nisa.sendrecv(tile(8, 8), tile(8, 8, dtype=nl.bfloat16), 1, 1, 0), "one dtype"),
    (2, "trn2", lambda out: nisa.sendrecv(tile(8, 300), tile(8, 300), 1, 1, 0, nisa.dma_engine.gpsimd_dma),
 "1200 bytes in each partition; gpsimd_dma sends at most 1024"),
    (2, "trn1", lambda out: nisa.core_barrier(out, (0, 1)), "needs NeuronCore-v3"),
]  # fmt: skip


@pytest.mark.parametrize(("lnc", "chip", "body", "message"), REFUSED)
def test_refused(lnc: int, chip: str, body: Callable[[NkiTensor], object], message: str) -> None:
    with tt.profile(chip=chip), pytest.raises(NkiError, match=message):
        nki.jit(one(body))[lnc].capture(np.zeros((8, 8), F32))


def with_barrier(a: NkiTensor) -> NkiTensor:
    return swap_halves(a, True)


def of_one_core(document: dict[str, Any]) -> None:
    """The trace of core 0 alone."""
    document["grid"], document["programs"] = [1], document["programs"][:1]


def two_devices(document: dict[str, Any]) -> None:
    """The programs are those of two ranks, of one core each."""
    document["grid"] = [2, 1]


def unshared(document: dict[str, Any]) -> None:
    """What the barrier names is no core's but its own."""
    barrier = next(one for one in document["programs"][0] if one[0] == "core_barrier")
    del document["tensors"][barrier[2]["data"]["tensor"]]["shared"]


@pytest.mark.parametrize(
    ("kernel", "change", "message"),
    [
        (exchange, of_one_core, r"sendrecv: requires LNC degree >= 2; the grid is \[1\]"),
        (with_barrier, of_one_core, r"core_barrier: requires LNC degree >= 2; the grid is \[1\]"),
        (exchange, two_devices, r"sendrecv: requires LNC degree >= 2; the grid is \[2, 1\]"),
        (with_barrier, unshared, "operand 'data' .* is no tensor of nl.shared_hbm"),
    ],
)
def test_a_recorded_trace_is_refused_as_a_kernel_is(
    kernel: Callable[..., object], change: Callable[[dict[str, Any]], None], message: str
) -> None:
    program = nki.jit(kernel)[2].capture(random(128, 16)).program
    load_trace(program)
    document = json.loads(program.text)
    change(document)
    with pytest.raises(NkiError, match=message):
        load_trace(replace(program, text=json.dumps(document)))


@pytest.mark.parametrize("dtype", [nl.float32, nl.int32])
def test_a_barrier_at_private_memory_is_refused_behind_one_at_its_like(dtype: object) -> None:
    """Shared memory of the same shape, and its view in another dtype, are what cores share; private is not."""

    def body(out: NkiTensor) -> None:
        nisa.core_barrier(out.view(dtype), (0, 1))
        nisa.core_barrier(nl.ndarray((8, 8), nl.float32, nl.hbm).view(dtype), (0, 1))

    with pytest.raises(NkiError, match=r"is no tensor of nl\.shared_hbm"):
        nki.jit(one(body))[2].capture(np.zeros((8, 8), F32))


@pytest.mark.parametrize("dtype", [nl.float32, nl.int16])
def test_a_barrier_at_a_tile_or_an_argument(dtype: object) -> None:
    """As kernels of AWS's library name them: both order what each core stored in the shared tensor."""

    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        between = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        mine, other = (nl.ds(core * 64, 64) for core in (nl.program_id(0), 1 - nl.program_id(0)))
        held = tile(64, 16)
        nisa.dma_copy(held, a[mine, :])
        nisa.dma_copy(between[mine, :], held)
        nisa.core_barrier(held.view(dtype), (0, 1), engine=nisa.engine.vector)
        nisa.dma_copy(held, between[other, :])
        nisa.tensor_scalar(held, held, nl.add, 1.0)
        nisa.dma_copy(between[other, :], held)
        nisa.core_barrier(a, (0, 1))
        nisa.dma_copy(held, between[mine, :])
        nisa.dma_copy(out[mine, :], held)
        return out

    a = random(128, 16)
    found, findings = on_two_cores(kernel, a)
    same(found, a + np.float32(1))
    assert findings == {}


def test_lnc_is_1_or_2() -> None:
    for grid in (3, (2,), 0):
        with pytest.raises(NkiError, match=r"NKI only supports LNC 1 or 2|whole numbers"):
            nki.jit(exchange)[grid]
    with pytest.raises(nisa.NkiValidationError):
        nki.jit(exchange)[(2,)]


# Beta 1's grids


def test_all_reduce_over_an_axis_of_the_grid() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        i, j = nl.program_id(0), nl.program_id(1)
        held = nl.load(a[i, j])
        nl.store(out[i, j], nl.all_reduce(held, np.add, program_axes=[1]))
        return out

    a = np.random.default_rng(10).integers(-9, 9, (2, 3, 8, 4)).astype(F32)
    expected: NDArray[Any] = np.broadcast_to(a.sum(axis=1, keepdims=True), a.shape)
    same(run_beta1(kernel, a, grid=(2, 3)), expected)


def test_atomic_rmw_adds_what_is_named_twice() -> None:
    def kernel(a: NkiTensor, places: NkiTensor) -> NkiTensor:
        out = nl.ndarray((6, 4), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.ones((6, 4), a.dtype))
        columns = nl.arange(4)[None, :]
        nl.atomic_rmw(out[nl.load(places), columns], nl.load(a), np.add)
        return out

    a = np.arange(20, dtype=F32).reshape(5, 4)
    places = np.array([[1], [3], [1], [0], [1]], np.int32)
    expected = np.ones((6, 4), F32)
    np.add.at(expected, places[:, 0], a)
    same(run_beta1(kernel, a, places), expected)


@pytest.mark.parametrize("masked", [False, True])
def test_rows_are_loaded_by_a_tile_of_indices(masked: bool) -> None:
    def kernel(a: NkiTensor, places: NkiTensor) -> NkiTensor:
        out = nl.ndarray((5, 4), dtype=a.dtype, buffer=nl.shared_hbm)
        rows, columns = nl.arange(5)[:, None], nl.arange(4)[None, :]
        index = nl.load(places)
        mask = rows < 3 if masked else None
        nl.store(out, nl.zeros((5, 4), a.dtype))
        nl.store(out[rows, columns], nl.load(a[index, columns], mask=mask), mask=mask)
        return out

    a = random(9, 4)
    places = np.array([[8], [0], [3], [3], [7]], np.int32)
    expected = a[places[:, 0]]
    if masked:
        expected[3:] = 0
    same(cast(Array, nki_beta1.jit(kernel)(a, places)), expected)


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_what_was_sent_may_be_overwritten_at_once(order: str) -> None:
    """The other core has what was in the tile at the exchange, whichever goes on first."""

    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        core = nl.program_id(0)
        mine, theirs = tile(64, 16), tile(64, 16)
        nisa.dma_copy(mine, a[nl.ds(core * 64, 64), :])
        for _ in range(2):
            nisa.sendrecv(src=mine, dst=theirs, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
            nisa.tensor_tensor(mine, mine, theirs, op=nl.add)
        nisa.dma_copy(out[nl.ds(core * 64, 64), :], mine)
        return out

    a = random(128, 16)
    with tt.scope(block_order=order):
        found, findings = on_two_cores(kernel, a)
    same(found, 2 * np.tile(a[:64] + a[64:], (2, 1)))
    assert findings == {}
