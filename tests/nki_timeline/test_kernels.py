"""Timelines of kernels, worked out by hand from the published costs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import triptych as tt
from triptych.core.launches import Finding
from triptych.execution.launch_report import LaunchReport
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.neuron.isa.hardware import Engine
from triptych.neuron.timeline import Cause, Timeline

Array = NDArray[Any]
Kernel = Callable[..., object]
F32 = np.float32
BF16 = ml_dtypes.bfloat16
SETUP = 1300.0
"""Nanoseconds before a transfer's first byte."""


def launched(kernel: Kernel, *inputs: Array, chip: str = "trn1", check: str | None = None) -> LaunchReport:
    with tt.profile(chip=chip, check=check) as profile:
        cast(Any, kernel)(*inputs)
    return profile.launches[-1]


def timeline_of(kernel: Kernel, *inputs: Array, chip: str = "trn1") -> Timeline:
    timeline = launched(nki.jit(kernel), *inputs, chip=chip).timeline
    assert timeline is not None
    return timeline


def new(*shape: int, dtype: object = nl.float32, buffer: object = nl.sbuf) -> NkiTensor:
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def loaded(array: NkiTensor) -> NkiTensor:
    made = new(*array.shape, dtype=array.dtype)
    nisa.dma_copy(made, array)
    return made


def stored(tile: NkiTensor) -> NkiTensor:
    out = new(*tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(out, tile)
    return out


def through_sbuf(a: NkiTensor) -> NkiTensor:
    return stored(loaded(a))


def add(a: NkiTensor, b: NkiTensor) -> NkiTensor:
    x, y = loaded(a), loaded(b)
    z = new(*a.shape, dtype=a.dtype)
    nisa.tensor_tensor(z, x, y, op=nl.add)
    return stored(z)


def zeros(*shape: int, dtype: type[np.generic] = F32) -> Array:
    return np.zeros(shape, dtype)


# By chip: nanoseconds of 8 rows of 2 KiB in a DMA engine, of the addition, and until its result is seen.
ADD = {
    "trn1": (8 * 2048 / 17, 2 * 512 / 1.12, 60 / 1.12),
    "trn2": (8 * 2048 / 23, 2 * 512 / 0.96, 60 / 0.96),
    "trn3": (8 * 2048 / 33, 2 * 512 / 1.2, 60 / 1.2),
}


@pytest.mark.parametrize("chip", ADD)
def test_two_loads_an_addition_and_a_store(chip: str) -> None:
    timeline = timeline_of(add, zeros(128, 512), zeros(128, 512), chip=chip)
    moved, added, seen = ADD[chip]
    first, second, addition, store = timeline.events()
    begun = SETUP + 2 * moved
    times = [
        (0, SETUP + moved),
        (0, begun),
        (begun, begun + added),
        (begun + added + seen, begun + added + seen + SETUP + moved),
    ]
    for event, (start, end) in zip((first, second, addition, store), times, strict=True):
        assert 1e9 * event.start == pytest.approx(start)
        assert 1e9 * event.end == pytest.approx(end)
    assert [one.engine for one in (first, addition, store)] == [Engine.DMA, Engine.VECTOR, Engine.DMA]
    assert (second.waited_for, second.waited_for_step) == (Cause.DMA_ENGINES, 0)
    assert (addition.waited_for, addition.waited_for_step) == (Cause.DATA, 1)
    assert addition.where.text.startswith("nisa.tensor_tensor")
    assert timeline.critical_path == (0, 1, 2, 3)
    assert timeline.seconds == store.end
    assert sum(one.seconds for one in timeline.critical_lines) == pytest.approx(timeline.seconds)
    assert 1e9 * timeline.busy[Engine.VECTOR] == pytest.approx(added)
    assert timeline.overlap == pytest.approx(0)
    (vector,) = [use for use in timeline.uses if use.engine is Engine.VECTOR]
    assert [(one.cause, one.culprit) for one in vector.stalls] == [(Cause.DATA, Engine.DMA)]
    assert 1e9 * vector.stalls[0].seconds == pytest.approx(begun)


def products(tiles: int, buffers: int) -> Kernel:
    """Products of a stationary tile with as many moving ones, each loaded into one of some buffers."""

    def kernel(a: NkiTensor, b: NkiTensor) -> NkiTensor:
        stationary = loaded(a)
        held = [new(128, 512, dtype=b.dtype) for _ in range(buffers)]
        psum = new(128, 512, buffer=nl.psum)
        for tile in range(tiles):
            moving = held[tile % buffers]
            nisa.dma_copy(moving, b[:, 512 * tile : 512 * (tile + 1)])
            nisa.nc_matmul(psum, stationary, moving)
        result = new(128, 512)
        nisa.tensor_copy(result, psum)
        return stored(result)

    return kernel


def test_double_buffers_hide_loads() -> None:
    """With one buffer each load waits for the end of a product, with two it runs beside the one before."""
    inputs = zeros(128, 128), zeros(128, 4 * 512)
    # Rows of 512 bytes cost as much as 2 KiB; a pass of float32 takes 96 cycles beside its columns.
    stationary, moving, product = 8 * 2048 / 17, 8 * 2048 / 17, 4 * (512 + 96) / 2.8
    one = [event for event in timeline_of(products(4, 1), *inputs).events() if event.engine is Engine.TENSOR]
    two = [event for event in timeline_of(products(4, 2), *inputs).events() if event.engine is Engine.TENSOR]
    first = SETUP + stationary + moving
    assert [1e9 * event.start for event in one] == pytest.approx(
        [first + tile * (product + SETUP + moving) for tile in range(4)]
    )
    # The second tile is loaded right behind the first; the third waits for the first product's end.
    second, third = first + moving, first + product + SETUP + moving
    assert [1e9 * event.start for event in two] == pytest.approx(
        [first, second, third, second + product + SETUP + moving]
    )
    (load,) = [event for event in timeline_of(products(2, 1), *inputs).events() if event.step == 3]
    assert (load.waited_for, load.waited_for_step) == (Cause.BUFFER_READ, 2)


def test_tiles_of_their_own_are_loaded_ahead() -> None:
    """A tile that is declared in the loop is another one in each round."""
    timeline = timeline_of(products(4, 4), zeros(128, 128), zeros(128, 4 * 512))
    loads = [event for event in timeline.events() if event.engine is Engine.DMA][:5]
    assert [event.start for event in loads] == [0] * 5
    assert timeline.overlap > timeline_of(products(4, 1), zeros(128, 128), zeros(128, 4 * 512)).overlap


@pytest.mark.parametrize(
    ("rows", "columns", "row_ns"), [(128, 64, 8 * 2048 / 17), (128, 1024, 8 * 4096 / 17), (4, 512, 4 * 2048 / 17)]
)
def test_descriptors(rows: int, columns: int, row_ns: float) -> None:
    """A row of 256 bytes costs as much as one of 2 KiB, and four partitions are one DMA engine's alone."""
    first, _ = timeline_of(through_sbuf, zeros(rows, columns)).events()
    assert 1e9 * first.end == pytest.approx(SETUP + row_ns)


def test_a_copy_within_hbm_goes_through_its_bandwidth_twice() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = new(*a.shape, buffer=nl.shared_hbm)
        nisa.dma_copy(out, a)
        return out

    (copy,) = timeline_of(kernel, zeros(1024, 1024)).events()
    assert 1e9 * copy.end == pytest.approx(SETUP + 2 * 4 * 2**20 / 410)


def test_a_loop_of_the_device_is_as_many_steps_as_rounds() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        tile, out = new(128, 64), new(128, 256, buffer=nl.shared_hbm)

        def body(index: object) -> None:
            nisa.dma_copy(tile, a.ap(pattern=[[256, 128], [1, 64]], scalar_offset=cast(Any, index), indirect_dim=1))
            nisa.dma_copy(out.ap(pattern=[[256, 128], [1, 64]], scalar_offset=cast(Any, index), indirect_dim=1), tile)

        nl.fori_loop(0, 4, body)
        return out

    timeline = timeline_of(kernel, zeros(128, 256), chip="trn2")
    moved = [event for event in timeline.events() if event.engine is Engine.DMA]
    assert len(moved) == 8
    for before, after in pairwise(moved):  # one tile, and nobody knows where a store goes
        assert after.start >= before.end


def test_cores_of_a_logical_core_run_side_by_side() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = new(*a.shape, buffer=nl.shared_hbm)
        for tile in range(nl.program_id(0), 4, nl.num_programs(0)):
            own = slice(128 * tile, 128 * (tile + 1))
            nisa.dma_copy(out[own], loaded(a[own]))
        return out

    alone, both = (
        launched(cast(Any, nki.jit(kernel))[cores], zeros(512, 512), chip="trn2").timeline for cores in (1, 2)
    )
    assert alone is not None
    assert both is not None
    assert both.seconds < alone.seconds
    assert {use.core for use in both.uses} == {0, 1}


def test_programs_of_beta_1_share_a_core() -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        rows = 128 * nl.program_id(0)
        nl.store(out[nl.ds(rows, 128), :], nl.load(a[nl.ds(rows, 128), :]))
        return out

    timeline = launched(cast(Any, kernel)[4], zeros(512, 512)).timeline
    assert timeline is not None
    assert {use.core for use in timeline.uses} == {0}
    assert timeline.steps == 8


def test_the_estimate_is_the_timeline_s() -> None:
    launch = launched(nki.jit(add), zeros(128, 512), zeros(128, 512))
    assert launch.timeline is not None
    roofline = launch.roofline
    assert roofline.estimate_s == launch.timeline.seconds
    assert roofline.limited_by == "DMA engines"
    assert roofline.launch_overhead_s == 0
    assert any("simulated timelines" in note for note in launch.notes)
    assert roofline.counters()["overlap"].value == pytest.approx(0)
    vector = next(one for one in roofline.roofs if one.name == "vector engine")
    assert vector.seconds == pytest.approx(launch.timeline.busy[Engine.VECTOR])


def test_two_cores_have_twice_the_peaks() -> None:
    """Copying 16 MiB: at one core's share of Trainium2's HBM, at two's, and at the whole chip's."""

    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        columns = a.shape[1] // nl.num_programs(0)
        for at in range(0, columns, 2048):
            tile, own = new(128, 2048), nl.ds(nl.program_id(0) * columns + at, 2048)
            nisa.dma_copy(tile, a[:, own])
            nisa.dma_copy(out[:, own], tile)
        return out

    a = zeros(128, 32768)
    one, two = (launched(cast(Any, kernel)[cores], a, chip="trn2").roofline for cores in (1, 2))
    seconds = 2 * a.nbytes / 3.0e12
    assert [one.floor_s, two.floor_s] == pytest.approx([8 * seconds, 4 * seconds])
    assert two.floor_s < two.estimate_s < one.floor_s
    whole = f"{1e6 * seconds:.4g} µs"
    assert [any(whole in note for note in found.notes) for found in (one, two)] == [True, True]


def test_another_chip_is_another_timeline() -> None:
    with tt.profile(chip="trn1"), tt.profile(chip="trn2") as inner:
        nki.jit(add)(zeros(128, 512), zeros(128, 512))
    record = inner.launches[0].record
    times = {chip: LaunchReport(record, tt.chips.load(chip)).roofline.estimate_s for chip in ADD}
    assert times["trn1"] > times["trn2"] > times["trn3"]


# Findings


def found(kernel: Kernel, *inputs: Array, chip: str = "trn1") -> dict[str, Finding]:
    """The findings by the first words behind the count."""
    launch = launched(nki.jit(kernel), *inputs, chip=chip, check="timecheck")
    return {one.message.partition(" ")[2]: one for one in launch.findings}


def test_nobody_is_told_unasked() -> None:
    assert not launched(nki.jit(products(4, 1)), zeros(128, 128), zeros(128, 2048)).findings


def one_of(findings: dict[str, Finding], words: str) -> Finding:
    (finding,) = [one for message, one in findings.items() if message.startswith(words)]
    assert finding.check == "timecheck"
    assert finding.message.endswith("modelled")
    assert finding.hint
    return finding


def test_small_transfers() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = new(*a.shape, buffer=nl.shared_hbm)
        for column in range(8):
            own = slice(64 * column, 64 * (column + 1))
            nisa.dma_copy(out[:, own], loaded(a[:, own]))
        return out

    finding = one_of(found(kernel, zeros(128, 512)), "transfers move rows of less than 512 bytes")
    assert finding.message.startswith("16 ")


def test_strided_transfers() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        tile = new(128, 64)
        nisa.dma_copy(tile, a[:, 0:128:2])
        return stored(tile)

    finding = one_of(found(kernel, zeros(128, 128)), "transfers walk memory with a step")
    assert finding.where is not None
    assert "a[:, 0:128:2]" in finding.where.text


def test_buffers_too_few_and_float32() -> None:
    seen = found(products(8, 1), zeros(128, 128), zeros(128, 4096))
    buffers = one_of(seen, "instructions wait for a buffer")
    assert buffers.where is not None
    assert buffers.where.text.startswith("nisa.dma_copy(moving")
    without = timeline_of(products(8, 8), zeros(128, 128), zeros(128, 4096)).seconds
    slow = timeline_of(products(8, 1), zeros(128, 128), zeros(128, 4096)).seconds
    assert f"takes {1e6 * (slow - without):.4g} of {1e6 * slow:.4g} µs" in buffers.message
    one_of(seen, "products of float32 take 4 passes")
    assert not any("buffer" in message for message in found(products(8, 8), zeros(128, 128), zeros(128, 4096)))
    half = found(products(8, 1), zeros(128, 128, dtype=BF16), zeros(128, 4096, dtype=BF16))
    assert not any("float32" in message for message in half)


def evacuating(engine: object) -> Kernel:
    """Products whose results a Vector engine that has other work, or another, copies out of PSUM."""

    def kernel(a: NkiTensor, b: NkiTensor) -> NkiTensor:
        x, y, out = loaded(a), loaded(b), new(128, 2048, buffer=nl.shared_hbm)
        result = new(128, 2048)
        for tile in range(4):
            psum, own = new(128, 512, buffer=nl.psum), slice(512 * tile, 512 * (tile + 1))
            nisa.nc_matmul(psum, x, y[:, own])
            nisa.tensor_copy(result[:, own], psum, engine=cast(Any, engine))
            nisa.tensor_tensor(result[:, own], result[:, own], y[:, own], op=nl.add)
        nisa.dma_copy(out, result)
        return out

    return kernel


def test_evacuation_by_the_busier_engine() -> None:
    inputs = zeros(128, 128), zeros(128, 2048)
    one_of(found(evacuating(nisa.vector_engine), *inputs, chip="trn2"), "copies out of PSUM run on the busier")
    assert not any("PSUM" in one for one in found(evacuating(nisa.scalar_engine), *inputs, chip="trn2"))


def test_work_that_another_engine_could_do() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        x, out = loaded(a), new(128, 4096, buffer=nl.shared_hbm)
        result = new(128, 4096)
        for tile in range(8):
            own = slice(512 * tile, 512 * (tile + 1))
            nisa.tensor_scalar(result[:, own], x[:, own], op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(out, result)
        return out

    one_of(found(kernel, zeros(128, 4096), chip="trn2"), "instructions run on the busiest engine")


def test_room_and_movement() -> None:
    """Tiles of more than half of SBUF: no load can be ahead, and nothing hides it."""

    def kernel(a: NkiTensor) -> NkiTensor:
        sums = new(128, 6)
        for tile in range(6):
            x = loaded(a[:, 28672 * tile : 28672 * (tile + 1)])
            nisa.tensor_reduce(sums[:, tile : tile + 1], nl.add, x, axis=1)
        return stored(sums)

    seen = found(kernel, zeros(128, 6 * 28672))
    one_of(seen, "instructions wait for room")
    one_of(seen, "transfers are not hidden")
