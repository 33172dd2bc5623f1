"""Tiles that do not fit SBUF: Beta 1's compiler spills them, which the timeline shows; `import nki` refuses them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from one_kernel import random, same

import triptych as tt
from triptych.chips import NeuronChip, load
from triptych.core.errors import NkiLimitError
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.neuron.isa import Instruction, Space
from triptych.neuron.isa.occupancy import peak_of, tiles_of
from triptych.neuron.isa.serialise import from_json
from triptych.neuron.isa.spilling import Fitted, spilled
from triptych.neuron.isa.trace import Trace
from triptych.neuron.timeline.timeline import timeline_of

ROWS = 128
COLUMNS = 8192
"""32 KiB of float32 in each partition: six tiles fit the 192 KiB of Trainium's SBUF."""


def sums(a: NkiTensor, changed: bool) -> NkiTensor:
    """Eight tiles that are all loaded before the first is used; `changed`: they are no longer what was loaded."""
    out = nl.ndarray((8, ROWS, COLUMNS), dtype=a.dtype, buffer=nl.shared_hbm)
    held = nl.ndarray((8, nl.par_dim(ROWS), COLUMNS), dtype=a.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(8):
        held[i] = nl.load(a[i])
        if changed:
            held[i] = nl.multiply(held[i], 2.0)
    for i in nl.affine_range(8):
        nl.store(out[i], held[i])
    return out


def trace_of(kernel: object, *args: object) -> Trace:
    with tt.profile(chip="trn1"):
        return from_json(nki_beta1.jit(kernel).capture(*args).program.text)  # type: ignore[arg-type]


def test_changed_tiles_are_saved_and_brought_back() -> None:
    a = random(8, ROWS, COLUMNS)
    with tt.profile(chip="trn1") as profile:
        found: object = nki_beta1.jit(sums)(a, True)
    same(np.asarray(found), 2 * a)
    timeline = profile.launches[0].timeline
    assert timeline is not None
    (added,) = timeline.work.added
    tensors, (program,) = timeline.work.tensors, timeline.work.programs
    directions = [tensors[program[at].region("dst").tensor].space for at in sorted(added)]
    assert directions == [Space.HBM, Space.HBM, Space.SBUF, Space.SBUF]
    trace = trace_of(sums, a, True)
    assert peak_of(tiles_of(program, tensors)[Space.SBUF], tensors).bytes <= 196608
    assert peak_of(tiles_of(trace.programs[0], trace.tensors)[Space.SBUF], trace.tensors).bytes == 8 * 32768


def test_tiles_that_lie_in_an_input_are_loaded_where_they_are_used() -> None:
    trace = trace_of(sums, random(8, ROWS, COLUMNS), False)
    fitted = spilled(trace.programs[0], trace.tensors, 196608)
    assert fitted is not None
    assert not [one for one in fitted.tensors if one.name.startswith("spilled")]
    assert len(fitted.program) == len(trace.programs[0])  # none is loaded twice
    check_values(fitted, trace)


def check_values(fitted: Fitted, trace: Trace) -> None:
    """Both programs store the same, of tiles that are symbols."""
    assert symbols(fitted.program, trace) == symbols(trace.programs[0], trace)


def symbols(program: Sequence[Instruction], trace: Trace) -> list[object]:
    """For each store to an output where it goes and what it holds, copies followed."""
    held: dict[tuple[int, int], object] = {}
    stored: list[object] = []
    for one in program:
        target, source = one.region("dst"), one.region("src" if "src" in one.operands else "data")
        value = held.get((source.tensor, source.offset), ("hbm", source.tensor, source.offset))
        if "operand0" in one.operands:
            value = (value, one.operands["operand0"])
        if target.tensor in trace.outputs:
            stored.append((target.tensor, target.offset, value))
        held[target.tensor, target.offset] = value
    return stored


def test_values_survive() -> None:
    trace = trace_of(sums, random(8, ROWS, COLUMNS), True)
    fitted = spilled(trace.programs[0], trace.tensors, 196608)
    assert fitted is not None
    assert len(fitted.added) == 4
    check_values(fitted, trace)


def test_what_no_spilling_helps() -> None:
    """One instruction's own tiles; tiles that the author placed; `import nki`, whose compiler refuses them."""

    def wide(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        tile = nl.load(a)
        nl.store(out, nl.add(tile, tile))
        return out

    with tt.profile(chip="trn1"), pytest.raises(NkiLimitError, match="2 live tiles take 196616 bytes of each SBUF"):
        nki_beta1.jit(wide).capture(random(ROWS, 3 * COLUMNS + 1))

    def current(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        tiles = [nl.ndarray((ROWS, COLUMNS), dtype=a.dtype, buffer=nl.sbuf) for _ in range(8)]
        for at, tile in enumerate(tiles):
            nisa.dma_copy(tile, a[at])
        for at, tile in enumerate(tiles):
            nisa.dma_copy(out[at], tile)
        return out

    with tt.profile(chip="trn1"), pytest.raises(NkiLimitError, match=r"live tiles take .* of each SBUF"):
        nki.jit(current).capture(random(8, ROWS, COLUMNS))


def test_the_finding() -> None:
    with tt.profile(chip="trn1", check="timecheck") as profile:
        nki_beta1.jit(sums)(random(8, ROWS, COLUMNS), True)
    told = [one for one in profile.launches[0].findings if "save tiles to HBM" in one.message]
    assert [one.message.split(",")[0] for one in told] == ["4 transfers save tiles to HBM and bring them back"]


def test_spilling_costs_time() -> None:
    chip = load("trn1")
    assert isinstance(chip, NeuronChip)
    trace = trace_of(sums, random(8, ROWS, COLUMNS), True)
    timeline = timeline_of(trace, [range(len(trace.programs[0]))], chip)
    moved = sum(one.bytes for one in timeline.work.cores[0].transfers if one is not None)
    assert moved == (16 + 4) * ROWS * 32768


def test_blocks_that_are_filled_with_a_number_are_filled_where_they_are_used() -> None:
    """A fill of all blocks is one of each: together they are more than SBUF, and none has to be saved."""

    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, ROWS, COLUMNS), dtype=a.dtype, buffer=nl.shared_hbm)
        held = nl.full((8, nl.par_dim(ROWS), COLUMNS), 2.0, dtype=a.dtype, buffer=nl.sbuf)
        for i in nl.affine_range(8):
            nl.store(out[i], nl.multiply(held[i], nl.load(a[i])))
        return out

    a = random(8, ROWS, COLUMNS)
    with tt.profile(chip="trn1") as profile:
        found: object = nki_beta1.jit(kernel)(a)
    same(np.asarray(found), 2 * a)
    timeline = profile.launches[0].timeline
    assert timeline is not None
    assert not any("spilled" in one.name for one in timeline.work.tensors)
