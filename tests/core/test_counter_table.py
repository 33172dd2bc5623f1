"""The counter table has every counter that a machine gives, with its unit, and nothing else is a counter."""

from __future__ import annotations

from collections import Counter as Count
from pathlib import Path

import numpy as np
import pytest

import triptych as tt
from triptych import gpu
from triptych.chips.fields import PIPES
from triptych.core.counter_table import ALWAYS, COMPANIONS, COUNTED, COUNTER_ROW, COUNTER_ROWS, NSIGHT_ALIASES
from triptych.core.counters import Counter, Counters, Provenance, counters_of, known_counters
from triptych.core.errors import UnknownCounter, UnsupportedFeature, UnsupportedInstruction
from triptych.gpu.isa import TABLE, Pipe
from triptych.gpu.run.kernel import Kernel
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.model.traffic import Level
from triptych.neuron.isa import Engine

RECORDED = sorted((Path(__file__).parents[1] / "data" / "ptx").glob("*.90.ptx"))

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
extern "C" __global__ void nothing() {}
extern "C" __global__ void no_conflicts() {
    __shared__ volatile int tile[32];
    tile[threadIdx.x] = 1;
}
"""


@nki.jit
def product(a: NkiTensor, b: NkiTensor) -> NkiTensor:
    out = nl.ndarray((a.shape[1], b.shape[1]), dtype=a.dtype, buffer=nl.shared_hbm)
    left, right = nl.load(a), nl.load(b)
    total = nl.ndarray(out.shape, dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(total, left, right)
    shifted = nl.ndarray(out.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(shifted, nl.gelu, total)
    index = nl.ndarray((64, 64), dtype=nl.int32, buffer=nl.sbuf)
    nisa.iota(index, [[1, 64]])
    nl.store(out, nl.add(shifted, shifted))
    return out


def wrong(machine: str, seen: Counters) -> list[str]:
    """The counters that are not as the table says."""
    rows = COUNTER_ROW[machine]
    said = {name: (row.unit, row.provenance) for name, row in rows.items()}
    return [f"{name}: {one}" for name, one in seen.items() if said.get(name) != (one.unit, one.provenance)]


def launch(name: str, *arguments: object) -> tt.LaunchReport:
    kernel = tt.cuda.compile(CUDA, arch="sm_90")[name]
    with tt.profile(chip="h100") as profile:
        kernel[1, 32](*arguments)
    return profile.launches[0]


# The machines ---------------------------------------------------------------------------------------------------


def test_a_gpu_launch_counts_what_the_table_has() -> None:
    report = launch("everything", np.zeros(128, np.float32), np.zeros(128, np.float32), np.zeros(1))
    expected = {"local.load.requests", "shared.atomic.bank_conflicts", "global.atomic.sectors", "flops.f64", "barriers"}
    assert expected | {"threads.active_lanes"} <= {*report.counters}
    assert wrong("gpu", report.counters) == []
    assert report.lines != ()
    assert [wrong("gpu", line.counters) for line in report.lines] == [[]] * len(report.lines)


def test_an_nki_launch_counts_what_the_table_has() -> None:
    with tt.profile(chip="trn2", target="trn2") as profile:
        product(np.ones((128, 64), np.float32), np.ones((128, 64), np.float32))
    report = profile.launches[0]
    assert {f"instructions.{engine}" for engine in ("tensor", "vector", "scalar", "gpsimd", "dma")} <= {
        *report.counters
    }
    assert {"flops.tensor.f32", "flops.scalar", "elements.vector", "psum.peak_bytes"} <= {*report.counters}
    assert wrong("neuron", report.counters) == []
    assert [wrong("neuron", line.counters) for line in report.lines] == [[]] * len(report.lines)


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_compiled_kernels_count_what_the_table_has(file: Path) -> None:
    module = gpu.load(file.read_text(encoding="utf-8"))
    for name in module.entries:
        try:
            plan = Kernel(module, name, warps_in_rows=True).facts.counting
        except (UnsupportedInstruction, UnsupportedFeature):
            continue  # docs/coverage.md says which
        assert {counter for _, counter in plan.keys} <= {*COUNTER_ROW["gpu"]}


def test_families_have_the_members_of_the_machines_tables() -> None:
    slots = [row.type_slots[0][1] for row in TABLE if row.flops]
    dtypes = {kind.removesuffix("x2") for kinds in slots for kind in kinds}
    assert names("gpu", "flops.<dtype>") == {f"flops.{kind}" for kind in dtypes}
    assert names("gpu", "instructions.pipe.<pipe>") == {f"instructions.pipe.{pipe.value}" for pipe in Pipe}
    assert names("neuron", "instructions.<engine>") == {f"instructions.{engine.value}" for engine in Engine}
    flops = names("neuron", "flops.<engine>") | names("neuron", "flops.tensor.<dtype>")
    assert flops == {f"flops.{pipe.key}" for pipe in PIPES["neuron"]}, "the model places them at the chip's peaks"


def names(machine: str, pattern: str) -> set[str]:
    (row,) = (row for row in COUNTER_ROWS if (row.machine, row.pattern) == (machine, pattern))
    return {*row.names}


def test_some_counters_are_always_there() -> None:
    nothing = launch("nothing").counters
    assert nothing["branches"].value == nothing["global.load.compulsory_bytes"].value == 0
    assert {*ALWAYS["gpu"]} <= {*nothing}
    assert "flops.f32" not in nothing
    assert {"sbuf.peak_bytes", "hbm.store.compulsory_bytes"} <= {*ALWAYS["neuron"]}


def test_conflicts_are_told_beside_wavefronts() -> None:
    assert COMPANIONS["shared.load.wavefronts"] == "shared.load.bank_conflicts"
    counters = launch("no_conflicts").counters
    assert counters["shared.store.bank_conflicts"] == Counter(0, "wavefronts", Provenance.COUNTED_PTX)
    assert "shared.load.bank_conflicts" not in counters


@pytest.mark.parametrize(("machine", "name"), [("gpu", "flops.f33"), ("gpu", "dma.transfers"), ("neuron", "branches")])
def test_a_machine_cannot_give_what_the_table_does_not_have(machine: str, name: str) -> None:
    with pytest.raises(UnknownCounter, match=f"unknown counter of the {machine} machine '{name}'"):
        counters_of(machine, {name: 1})


# The table ------------------------------------------------------------------------------------------------------


def test_a_name_has_one_row_of_a_machine() -> None:
    seen = Count((row.machine, name) for row in COUNTER_ROWS for name in row.names)
    assert [key for key, times in seen.items() if times > 1] == []
    assert COUNTED.isdisjoint(COUNTER_ROW["model"]), "a modelled number never carries a counter's name"
    for row in COUNTER_ROWS:
        assert row.unit
        assert row.meaning.endswith(".")
        assert row.machine == "model" or "<" not in "".join(row.names), "a placeholder without values"
        assert {*row.nsight} <= {*row.names}
        assert {*row.companions} <= COUNTED


def test_rows_of_the_table() -> None:
    assert COUNTER_ROW["gpu"]["shared.atomic.bank_conflicts"].unit == "wavefronts"
    assert COUNTER_ROW["gpu"]["global.load.compulsory_bytes"].unit == "bytes"
    assert COUNTER_ROW["neuron"]["flops.tensor.fp8"].provenance is Provenance.COUNTED_NKI
    assert not COUNTER_ROW["gpu"]["threads.active_lanes"].adds
    assert COUNTER_ROW["model"]["roof.<name>"].named("f32 pipe") == "roof.f32 pipe"
    assert NSIGHT_ALIASES["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == "global.load.sectors"
    assert len(NSIGHT_ALIASES) == 8


# Looking up -----------------------------------------------------------------------------------------------------


def test_a_counter_by_its_own_name_and_by_nsight_computes() -> None:
    counters = counters_of("gpu", {"global.load.sectors": 4, "flops.f32": 32})
    alias = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    assert counters[alias] == counters["global.load.sectors"] == Counter(4, "sectors", Provenance.COUNTED_PTX)
    assert counters.value(alias) == 4
    assert alias in counters
    assert [*counters] == ["global.load.sectors", "flops.f32"]


def test_a_known_counter_that_was_not_counted() -> None:
    counters = counters_of("gpu", {"flops.f32": 32})
    assert counters.value("flops.f64") == counters.value("dma.load.bytes") == 0
    assert counters.value("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum") == 0
    assert counters.get("flops.f64") is None
    with pytest.raises(UnknownCounter, match=r"'flops\.f64' was not counted") as raised:
        counters["flops.f64"]
    assert "counters.value('flops.f64') is 0" in str(raised.value)


def test_a_typing_error_is_no_zero() -> None:
    counters = counters_of("gpu", {"flops.f32": 32})
    with pytest.raises(tt.UnknownName, match=r"unknown counter 'global\.load\.sector'") as raised:
        counters.value("global.load.sector")
    assert "did you mean global.load.sectors" in str(raised.value)
    with pytest.raises(tt.UnknownName, match=r"did you mean l1tex__t_sectors_pipe_lsu_mem_global_op_ld\.sum"):
        counters.value("l1tex__t_sectors_pipe_lsu_mem_global_op_ld")
    with pytest.raises(tt.UnknownName, match="unknown counter 'flops'"):
        counters["flops"]
    assert "flops" not in counters


def test_readers_name_known_counters() -> None:
    assert known_counters("branches", "dma.transfers") == ("branches", "dma.transfers")
    with pytest.raises(UnknownCounter, match="unknown counter 'floor'"):
        known_counters("branches", "floor")
    with pytest.raises(UnknownCounter, match=r"unknown counter 'global\.load\.byte'"):
        Level("l3", "L3", "L3", ("global.load.byte",), (), lambda chip: 1.0)
