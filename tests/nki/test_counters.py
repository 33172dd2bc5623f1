"""Counters, per launch and per source line, against figures worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from triptych.core.counters import Counters, Provenance
from triptych.execution.profile import Profile
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki
from triptych.languages.nki.tracing.tensors import NkiTensor


@nki.jit
def add(a: NkiTensor, b: NkiTensor) -> NkiTensor:
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    left = nl.load(a)
    right = nl.load(b)
    total = nl.add(left, right)
    nl.store(out, total)
    return out


def values(counters: Counters) -> dict[str, int | float]:
    return {name: counter.value for name, counter in counters.items()}


def test_add(trn2: Profile) -> None:
    a = np.ones((128, 512), np.float32)
    add(a, a.copy())
    (launch,) = trn2.launches
    assert values(launch.counters) == {
        "dma.load.bytes": 2 * 262144,
        "dma.store.bytes": 262144,
        "dma.transfers": 3,
        "elements.vector": 65536,
        "flops.vector": 65536,
        "hbm.load.compulsory_bytes": 2 * 262144,
        "hbm.store.compulsory_bytes": 262144,
        "instructions.dma": 3,
        "instructions.vector": 1,
        "psum.peak_bytes": 0,
        "sbuf.peak_bytes": 3 * 2048,
    }
    assert {counter.provenance for counter in launch.counters.values()} == {Provenance.COUNTED_NKI}
    units = {name: counter.unit for name, counter in launch.counters.items()}
    assert units["dma.load.bytes"] == units["sbuf.peak_bytes"] == "bytes"
    assert units["flops.vector"] == "FLOPs"
    assert units["instructions.dma"] == "instructions"
    assert units["elements.vector"] == "elements"
    assert units["dma.transfers"] == "transfers"


def test_add_by_line(trn2: Profile) -> None:
    a = np.ones((128, 512), np.float32)
    add(a, a.copy())
    lines = {line.where.text: values(line.counters) for line in trn2.launches[0].lines}
    load = {"dma.load.bytes": 262144, "dma.transfers": 1, "instructions.dma": 1}
    assert lines == {
        "left = nl.load(a)": load,
        "right = nl.load(b)": load,
        "total = nl.add(left, right)": {"elements.vector": 65536, "flops.vector": 65536, "instructions.vector": 1},
        "nl.store(out, total)": {"dma.store.bytes": 262144, "dma.transfers": 1, "instructions.dma": 1},
    }


def test_the_same_bytes_are_compulsory_once(trn2: Profile) -> None:
    a = np.ones((128, 512), np.float32)
    add(a, a)
    counters = trn2.launches[0].counters
    assert counters["dma.load.bytes"].value == 2 * 262144
    assert counters["hbm.load.compulsory_bytes"].value == 262144


def test_every_engine(trn2: Profile) -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((64, 64), dtype=nl.bfloat16, buffer=nl.shared_hbm)
        data = nl.load(a)  # 64 x 64 bf16
        index = nl.ndarray((64, 64), dtype=nl.int32, buffer=nl.sbuf)
        nisa.iota(index, [[1, 64]])
        nl.add(index, index)
        acc = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(acc, data, data)
        mirrored = nl.ndarray((64, 64), dtype=nl.bfloat16, buffer=nl.psum)
        nisa.nc_transpose(mirrored, data)
        scaled = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(scaled, acc, nl.multiply, 2.0, op1=nl.add, operand1=1.0)
        row = nl.max(scaled, axis=1)
        nisa.activation(scaled, nl.exp, scaled, bias=row, scale=-1.0)
        nl.store(out, scaled)
        return out

    kernel(np.ones((64, 64), nl.bfloat16))
    counters = trn2.launches[0].counters
    assert counters["flops.tensor.bf16"].value == 2 * 64**3
    assert "flops.tensor.f32" not in counters
    assert counters["instructions.tensor"].value == 2
    assert counters["instructions.gpsimd"].value == 2
    assert counters["elements.gpsimd"].value == 2 * 4096
    assert counters["flops.vector"].value == 2 * 4096 + 63 * 64
    assert counters["elements.vector"].value == 2 * 4096
    assert counters["flops.scalar"].value == 3 * 4096
    assert counters["dma.load.bytes"].value == 8192
    assert counters["dma.store.bytes"].value == 8192
    assert counters["psum.peak_bytes"].value == 256 + 128


def test_counters_repeat_exactly(trn2: Profile) -> None:
    a = np.random.default_rng(60).random((100, 30)).astype(np.float32)
    for _ in range(2):
        add(a, a)
    first, second = trn2.launches
    assert first.record == second.record


@pytest.mark.parametrize(("partitions", "count", "taken"), [(32, 1, 256), (32, 4, 256), (64, 1, 256), (64, 4, 512)])
def test_tiles_of_few_partitions_take_no_less_than_one_of_them(
    trn2: Profile, partitions: int, count: int, taken: int
) -> None:
    """64 numbers in each partition are 256 bytes, whatever lies beside them."""

    @nki.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray((count, *a.shape), dtype=a.dtype, buffer=nl.shared_hbm)
        tiles = [nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf) for _ in range(count)]
        for tile in tiles:
            nisa.dma_copy(tile, a)
        for at, tile in enumerate(tiles):
            nisa.dma_copy(out[at], tile)
        return out

    kernel(np.zeros((partitions, 64), np.float32))
    assert trn2.launches[0].counters.value("sbuf.peak_bytes") == taken
