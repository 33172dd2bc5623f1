"""Tensor instructions by both executors against the recording of an H200, in the hardware's arithmetic: its very bits.

The kernels are those that were recorded, so that fragments and `wgmma`'s descriptors are compared too.
"""

from __future__ import annotations

import numpy as np
import pytest
from mma_inputs import matrices
from mma_kinds import KINDS, Kind
from mma_run import run_generated, run_oracle
from test_mma import SHOWN, digest_of, record, recorded

from triptych.core.settings import KINDS as SETTINGS
from triptych.gpu.isa.tensor.numerics import FAST, HARDWARE, NUMERICS

RUN = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "mma.sync.aligned.m16n8k16.row.col.f16.e5m2.e4m3.f16",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32", "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16",
    "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32", "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16",
    "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2", "wgmma.mma_async.sync.aligned.m64n8k32.f16.e5m2.e5m2",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 (1, 1, -1)",
    "wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2 (0, -1, 1)",
)  # fmt: skip
"""Kinds: each row of `SUMMATIONS`, or one that has the same numbers, and each type."""
SAME_IN_BOTH = (
    "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", "mma.sync.aligned.m8n8k4.row.col.rm.f64.f64.f64.f64",
    "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32", "mma.sync.aligned.m16n8k32.row.col.s32.s4.u4.s32",
    "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
    "wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.s8.satfinite",
)  # fmt: skip
"""Kinds for which the fast arithmetic is the hardware's."""
OF_THE_ORACLE = ("narrow", "cancel", "specials", "bits")


def numbered(names: tuple[str, ...]) -> list[tuple[int, Kind]]:
    found = [(number, kind) for number, kind in enumerate(KINDS) if kind.name in names]
    assert len(found) == len(names)
    return found


def check(number: int, kind: Kind, numerics: str) -> None:
    made = [matrices(kind, style) for style in kind.styles]
    results = run_generated(kind, made, numerics)
    shown = recorded(number)
    for place, (style, found) in enumerate(zip(kind.styles, np.split(results, len(made)), strict=True)):
        np.testing.assert_array_equal(found[0, :SHOWN, :SHOWN], shown[place], style)
        assert digest_of(found) == record()["kinds"][number]["styles"][style][1], style


@pytest.mark.parametrize(("number", "kind"), numbered(RUN), ids=RUN)
def test_generated_code_gives_the_device_s_bits(number: int, kind: Kind) -> None:
    check(number, kind, HARDWARE)


@pytest.mark.parametrize(("number", "kind"), numbered(SAME_IN_BOTH), ids=SAME_IN_BOTH)
def test_fast_arithmetic_gives_the_device_s_bits(number: int, kind: Kind) -> None:
    check(number, kind, FAST)


@pytest.mark.parametrize(("number", "kind"), numbered(RUN), ids=RUN)
def test_the_oracle_gives_the_device_s_bits(number: int, kind: Kind) -> None:
    made = [tuple(x[:1] for x in matrices(kind, style)) for style in OF_THE_ORACLE]
    results = run_oracle(kind, [(a, b, c) for a, b, c in made], HARDWARE)
    for style, found in zip(OF_THE_ORACLE, results, strict=True):
        shown = recorded(number)[kind.styles.index(style)]
        np.testing.assert_array_equal(found[:SHOWN, :SHOWN], shown, style)


def test_the_setting_has_the_arithmetics_that_there_are() -> None:
    assert SETTINGS["tensor_numerics"].choices == tuple(NUMERICS)
