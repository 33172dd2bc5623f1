"""The pages of the reference are what the tables and docstrings say, and the page of counters has all counters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import generate
import triptych as tt
from generators import counters
from generators.counters import Family
from triptych import gpu
from triptych.core.errors import UnsupportedFeature, UnsupportedInstruction
from triptych.gpu.run.kernel import Kernel

DOCS = Path(generate.__file__).parent
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")

CUDA = """
extern "C" __global__ void everything(float *out, const float *in, double *sum) {
    __shared__ float tile[32 * 33];
    float own[4];
    tile[threadIdx.x * 33] = in[threadIdx.x * 3];
    for (int i = 0; i < 4; i++) own[(i + threadIdx.x) % 4] = tile[threadIdx.x * 32];
    __syncthreads();
    if (threadIdx.x % 3 == 0) out[threadIdx.x] = own[threadIdx.x % 4] * 2.0f + 1.0f;
    atomicAdd(&tile[0], 1.0f);
    atomicAdd(sum, (double)threadIdx.x * 0.5);
}
"""


@pytest.mark.parametrize("name", generate.PAGES)
def test_pages_are_up_to_date(name: str) -> None:
    page = DOCS / name
    written = page.read_text(encoding="utf-8") if page.exists() else ""
    assert written == generate.NOTE + generate.PAGES[name](), "run python docs/generate.py"


@pytest.mark.parametrize("page", [*DOCS.parent.glob("*.md"), *DOCS.rglob("*.md")], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets: list[str] = LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))
    lost = [target for target in targets if ":" not in target and not (page.parent / target).exists()]
    assert lost == []


def _units(families: Sequence[Family]) -> Mapping[str, str]:
    return {name: family.unit for family in families for name in family.names}


def _wrong(seen: tt.Counters, families: Sequence[Family]) -> Iterable[str]:
    documented = _units(families)
    return [f"{name}: {one.unit}" for name, one in seen.items() if documented.get(name) != one.unit]


def test_counters_of_a_gpu_launch_are_documented() -> None:
    kernel = tt.cuda.compile(CUDA)["everything"]
    with tt.profile(chip="h100") as profile:
        kernel[1, 32](np.zeros(128, np.float32), np.zeros(128, np.float32), np.zeros(1))
    (launch,) = profile.launches
    assert {"local.load.requests", "shared.atomic.requests", "flops.f64", "branches.divergent"} <= {*launch.counters}
    assert _wrong(launch.counters, counters.GPU) == []


@pytest.mark.parametrize("file", sorted((DOCS.parent / "tests/data/ptx").glob("*.90.ptx")), ids=lambda file: file.stem)
def test_counters_of_compiled_kernels_are_documented(file: Path) -> None:
    module = gpu.load(file.read_text(encoding="utf-8"))
    for name in module.entries:
        try:
            plan = Kernel(module, name, rows=True).facts.counting
        except (UnsupportedInstruction, UnsupportedFeature):
            continue  # docs/coverage.md says which
        counted = {name for _, name in plan.keys if not name.startswith("param.")}  # parameters are no memory traffic
        assert counted <= {*_units(counters.GPU)}


def test_counters_of_a_neuron_launch_are_documented() -> None:
    tt.nki.activate()
    try:
        kernel: Any = import_module("documented_kernel").product  # `nki` is there from now on
        with tt.profile(chip="trn2") as profile:
            kernel(np.ones((128, 128), np.float32), np.ones((128, 64), np.float32))
    finally:
        tt.nki.deactivate()
    (launch,) = profile.launches
    assert {"flops.tensor.f32", "flops.scalar", "elements.vector", "psum.peak_bytes"} <= {*launch.counters}
    assert _wrong(launch.counters, counters.NEURON) == []


def test_modelled_numbers_are_documented() -> None:
    kernel = tt.cuda.compile(CUDA)["everything"]
    with tt.profile(chip="h100") as profile:
        kernel[1, 32](np.zeros(128, np.float32), np.zeros(128, np.float32), np.zeros(1))
    modelled = profile.launches[0].roofline.counters()
    named = tt.Counters({name: one for name, one in modelled.items() if not name.startswith("roof.")})
    assert _wrong(named, counters.MODEL) == []
    assert {one.provenance for one in modelled.values()} == {tt.Provenance.MODELLED}
