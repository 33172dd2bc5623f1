"""Case: NKI's addition over 128×512, the limit of 128 partitions, and the style that tutorials mix."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from case_helpers import line_of, random, refused, value

import triptych as tt

pytestmark = pytest.mark.usefixtures("nki_active")


def kernels() -> Any:  # noqa: ANN401  # NKI kernels have no types
    return import_module("case_nki_kernels")


def test_add_over_128_by_512(profile: tt.Profile) -> None:
    a, b = random(128, 512), random(128, 512, seed=1)
    assert np.array_equal(kernels().add_tile(a, b), a + b)
    (launch,) = profile.launches
    assert (launch.language, launch.target, launch.findings) == ("nki", "trn2", ())
    assert value(launch, "dma.load.bytes") == 2 * a.nbytes
    assert value(launch, "dma.store.bytes") == a.nbytes
    assert value(launch, "flops.vector") == a.size
    assert launch.roofline.intensity == 1 / 12


@pytest.mark.parametrize("name", ["add_tile", "add_kernel"])
def test_a_tile_of_129_rows_is_refused(name: str, profile: tt.Profile) -> None:
    a, b = random(129, 512), random(129, 512, seed=1)
    with refused(tt.NkiLimitError, "partition dimension 129", "limit of 128") as caught:
        getattr(kernels(), name)(a, b)
    assert caught.value.where is not None
    assert caught.value.where.file.endswith("case_nki_kernels.py")
    assert line_of(caught.value)
    assert profile.launches == []


def test_the_mixed_style_gives_exactly_one_notice(profile: tt.Profile) -> None:
    a, b = random(128, 512), random(128, 512, seed=1)
    for _ in range(2):
        assert np.array_equal(kernels().add_kernel(a, b), a + b)
    for launch in profile.launches:
        (finding,) = launch.findings
        assert finding.severity is tt.Severity.NOTICE
        assert "import nki" in finding.message
        assert finding.where is not None
        assert finding.where.text.startswith("nl.store(out[i_p, i_f]")
