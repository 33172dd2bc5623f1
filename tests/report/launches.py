"""Launches made by hand for the report's tests."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from triptych.chips import load
from triptych.core.checks import Severity, in_force, names_of
from triptych.core.counters import counters_of
from triptych.core.launches import Account, Finding, LaunchRecord, Line
from triptych.core.plan import LaunchShape
from triptych.core.source import SourceLocation
from triptych.execution.launch_report import LaunchReport
from triptych.execution.profile import profile
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki
from triptych.languages.nki.tracing.tensors import NkiTensor

N = 1 << 20
SHAPE = LaunchShape((4096, 1, 1), (256, 1, 1))
GPU_CHECKS = names_of(in_force("gpu"))
VEC_ADD: Mapping[str, int] = {
    "instructions.warp": N // 32 * 14,
    "branches": N // 32,
    "branches.divergent": 1,
    "flops.f32": N,
    "global.load.requests": 2 * N // 32,
    "global.load.sectors": 2 * N // 8,
    "global.store.requests": N // 32,
    "global.store.sectors": N // 8,
    "global.load.compulsory_bytes": 8 * N,
    "global.store.compulsory_bytes": 4 * N,
}
NKI_ADD: Mapping[str, int] = {
    "instructions.vector": 8,
    "instructions.dma": 24,
    "elements.vector": N,
    "flops.vector": N,
    "dma.load.bytes": 8 * N,
    "dma.store.bytes": 4 * N,
    "hbm.load.compulsory_bytes": 8 * N,
    "hbm.store.compulsory_bytes": 4 * N,
    "sbuf.peak_bytes": 12288,
}


def gpu_launch(
    kernel: str = "vec_add",
    *,
    chip: str = "h100",
    target: str = "sm_90",
    values: Mapping[str, int] = VEC_ADD,
    lines: tuple[Line, ...] = (),
    findings: tuple[Finding, ...] = (),
    stopped: bool = False,
    shape: LaunchShape = SHAPE,
    call_site: SourceLocation | None = None,
) -> LaunchReport:
    record = LaunchRecord(
        kernel, "gpu", "cuda", target, shape, 0, Account.of(counters_of("gpu", values), lines), findings,
        GPU_CHECKS, call_site, stopped,
    )  # fmt: skip
    return LaunchReport(record, load(chip))


def stopped_launch() -> LaunchReport:
    return gpu_launch("bad", values={}, findings=(finding(Severity.ERROR),), stopped=True)


def nki_launch(lines: tuple[Line, ...] = ()) -> LaunchReport:
    counted = counters_of("neuron", NKI_ADD)
    record = LaunchRecord("vec_add", "neuron", "nki", "trn2", LaunchShape((1, 1, 1)), 0, Account.of(counted, lines))
    return LaunchReport(record, load("trn2"))


def line(file: str, number: int, values: Mapping[str, int], *frames: SourceLocation, machine: str = "gpu") -> Line:
    return Line(SourceLocation(file, number), counters_of(machine, values), frames)


def finding(severity: Severity, where: SourceLocation | None = None, *frames: SourceLocation) -> Finding:
    return Finding("memcheck", severity, "global load of 4 bytes behind the end of [a]", where, frames)


def simulated_launch() -> LaunchReport:
    """A kernel on a NeuronCore that really ran: a load, a scaling and a store."""

    def scale(a: NkiTensor) -> NkiTensor:
        tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(tile, a)
        nisa.tensor_scalar(tile, tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(out, tile)
        return out

    with profile(chip="trn2") as recorded:
        nki.jit(scale)(np.ones((128, 512), np.float32))
    return recorded.launches[-1]
