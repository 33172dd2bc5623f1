"""Runs several kernels and prints every counter of every launch and line: what two processes must agree on."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np

import triptych as tt


def launches() -> list[tt.LaunchReport]:
    """Kernels with divergence, conflicts, atomics, local memory and a ragged last block."""
    module = tt.cuda.compile(Path(__file__).with_name("case_kernels.cu"), arch="sm_90")
    generator = np.random.default_rng(7)
    x = generator.standard_normal(9000).astype(np.float32)
    start = generator.integers(1, 5000, 3000).astype(np.uint32)
    order = np.arange(9, dtype=np.int32)[::-1].copy()
    out, total, bins = np.zeros(9000, np.float32), np.zeros(1, np.float32), np.zeros(256, np.uint32)
    with tt.profile(chip="h100") as profile:
        module["collatz"][12, 256](start, out[:3000].view(np.int32), 3000)
        module["histogram"][9, 256](start.view(np.uint8), 3000, bins)
        module["reduce"][9, 256](x, total, 9000)
        module["sgemm"][(6, 6), (16, 16)](x, x, out, 90, 90, 90)
        module["median"][8, 128](x, out, order, 1000)
        module["far"][30, 256](x[1:], out, 0, 7001)
    return profile.launches


def text(reports: list[tt.LaunchReport]) -> str:
    """Each counter of each launch, and of each of its lines."""
    rows: list[str] = []
    for report in reports:
        rows += [f"{report.kernel} {name} {counter.value!r}" for name, counter in report.counters.items()]
        for line in report.lines:
            rows += [f"{line.where.line} {name} {counter.value!r}" for name, counter in line.counters.items()]
    return "\n".join(rows)


if __name__ == "__main__":
    with tt.scope(workers=int(sys.argv[1])):
        whole = text(launches())
    print(hashlib.sha256(whole.encode()).hexdigest(), whole.count("\n"))
