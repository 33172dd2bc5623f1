"""The table of engine instructions, and the arithmetic at its edge."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from triptych.chips import NeuronChip, load, targets
from triptych.core.dtypes import DTYPES
from triptych.languages.nki import language as nl
from triptych.neuron.isa import ROWS, Engine, hardware
from triptych.neuron.isa.casts import convert
from triptych.neuron.isa.error_function import erf, erfc
from triptych.neuron.isa.hardware import ENGINES
from triptych.neuron.isa.row import Effect
from triptych.neuron.isa.verify import merged_axes


def test_every_row_says_what_it_is() -> None:
    for name, row in ROWS.items():
        assert row.meaning.__doc__, name
        assert row.source.startswith(("nki.isa.", "nki.language.", "nki.collectives.")), name
        moves_nothing = not any(rule.read or rule.written for rule in row.operands)
        silent = row.effect in (Effect.BEGIN_WHILE, Effect.END, Effect.PRINT) or moves_nothing
        assert any(rule.written for rule in row.operands) != silent, name
        assert len({rule.name for rule in row.operands}) == len(row.operands), name


def test_every_engine_has_its_columns() -> None:
    assert set(ENGINES) == set(Engine)
    assert [engine.value for engine in Engine if not engine.facts.reaches_psum] == ["gpsimd"]
    assert [engine.value for engine in Engine if engine.facts.starts_anywhere] == ["dma"]


def test_generations_grow() -> None:
    sizes = [row.sbuf_bytes_per_partition for row in map(hardware, targets("neuron"))]
    assert sizes == sorted(sizes)
    assert all(row.psum_banks == 8 for row in map(hardware, targets("neuron")))


def test_error_function() -> None:
    x = np.concatenate([np.linspace(-9, 9, 3001), [0.0, 1.0, -1.0, 26.0]])
    np.testing.assert_allclose(erf(x), [math.erf(value) for value in x], rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(erfc(x), [math.erfc(value) for value in x], rtol=2e-13)
    with np.errstate(all="ignore"):
        assert np.array_equal(erf(np.array([np.inf, -np.inf])), [1, -1])
        assert np.array_equal(erfc(np.array([np.inf, -np.inf])), [0, 2])
        assert np.isnan(erf(np.array([np.nan]))).all()


@pytest.mark.parametrize("name", ["s8", "u8", "s16", "u16", "s32", "u32"])
def test_integers_saturate(name: str) -> None:
    dtype = DTYPES[name]
    limits = np.iinfo(dtype.numpy)
    values = np.array([1e20, -1e20, np.inf, -np.inf, np.nan, 3.5, 4.5], np.float32)
    expected = [limits.max, limits.min, limits.max, limits.min, 0, 4, 4]
    assert np.array_equal(convert(values, dtype), np.array(expected, dtype.numpy))


def test_floats_round_to_nearest_even() -> None:
    values = np.array([1 + 2.0**-9, 1 + 3 * 2.0**-9, -1e38, 2.0**-140], np.float32)
    rounded = convert(values, DTYPES["bf16"])
    assert rounded.dtype == ml_dtypes.bfloat16
    assert rounded[:2].astype(np.float64).tolist() == [1.0, 1 + 2.0**-7]
    assert convert(np.array([2.0]), DTYPES["b1"]).tolist() == [True]


@pytest.mark.parametrize(
    ("pattern", "axes"),
    [
        ((), 0),
        (((1, 8),), 1),
        (((8, 4), (1, 8)), 1),
        (((16, 4), (1, 8)), 2),
        (((5, 1), (1, 8)), 1),
        (((0, 4), (1, 8)), 2),
    ],
)
def test_neighbouring_axes_join(pattern: tuple[tuple[int, int], ...], axes: int) -> None:
    assert merged_axes(pattern) == axes


@pytest.mark.parametrize("name", targets("neuron"))
def test_sizes_are_the_chip_s(name: str) -> None:
    chip = load(name)
    assert isinstance(chip, NeuronChip)
    assert hardware(name) is hardware(chip.target)
    usable = {"inf2": 196608, "trn1": 196608, "trn2": 212984, "trn3": 245752}[name]
    assert hardware(name).sbuf_bytes_per_partition == usable
    assert chip.sbuf_bytes_per_partition - chip.sbuf_reserved_bytes_per_partition == usable
    assert hardware(name).hbm_bytes * chip.core_count == chip.hbm_bytes
    assert hardware(name).partitions == chip.partition_count == nl.tile_size.pmax
    assert hardware(name).psum_bank_bytes == nl.tile_size.psum_bank_fmax_bytes == 4 * nl.tile_size.psum_fmax
