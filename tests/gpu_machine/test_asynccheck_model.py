"""asynccheck of `cp.async` against a slow, obvious model: random copies, groups, waits and accesses of parted lanes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

import triptych as tt

SOURCE = r"""
extern "C" __global__ void interpret(const int4* program, int count, const float4* in, float4* out) {
    __shared__ float4 cells[32];
    int lane = threadIdx.x;
    #pragma unroll 1
    for (int i = 0; i < count; i++) {
        int4 step = program[i];
        if (!(step.y >> lane & 1)) continue;
        float4* cell = &cells[(step.z + lane * step.w) & 31];
        unsigned place = (unsigned)__cvta_generic_to_shared(cell);
        switch (step.x) {
        case 0: asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(in)); break;
        case 1: asm volatile("cp.async.commit_group;" ::: "memory"); break;
        case 2: asm volatile("cp.async.wait_group 0;" ::: "memory"); break;
        case 3: asm volatile("cp.async.wait_group 1;" ::: "memory"); break;
        case 4: asm volatile("cp.async.wait_group 2;" ::: "memory"); break;
        case 5: asm volatile("cp.async.wait_all;" ::: "memory"); break;
        case 6: out[lane] = *cell; break;
        case 7: *cell = make_float4(1, 2, 3, 4); break;
        }
    }
}
"""
COPY, COMMIT, WAIT, WAIT_ALL, READ, WRITE = 0, 1, (2, 3, 4), 5, 6, 7
Step = tuple[int, int, int, int]
"""Which, the lanes, and lane i's cell: the third + i times the fourth, modulo 32: one for each lane."""


@dataclass
class Model:
    """The copies that cells may still get, by lane and its group; each lane's groups, committed and waited for."""

    pending: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    committed: list[int] = field(default_factory=lambda: [0] * 32)
    waited: list[int] = field(default_factory=lambda: [0] * 32)
    found: dict[tuple[str, str], tuple[int, int, int]] = field(
        default_factory=dict[tuple[str, str], tuple[int, int, int]]
    )
    """By what is done: the thread, the cell, and the thread of the copy, of the first hazard."""

    def run(self, step: Step) -> None:
        """One step of the program."""
        kind, mask, first, apart = step
        lanes = [lane for lane in range(32) if mask >> lane & 1]
        cells = [(first + lane * apart) % 32 for lane in lanes]
        for lane, cell in zip(lanes, cells, strict=True):
            self._step(kind, lane, cell)
        if kind == COPY:
            self.pending |= {cell: (lane, self.committed[lane]) for lane, cell in zip(lanes, cells, strict=True)}

    def _step(self, kind: int, lane: int, cell: int) -> None:
        if kind in (COMMIT, WAIT_ALL):
            self.committed[lane] += 1
        if kind in WAIT:
            self.waited[lane] = max(self.waited[lane], self.committed[lane] - WAIT.index(kind))
        if kind == WAIT_ALL:
            self.waited[lane] = self.committed[lane]
        if kind in (COPY, READ, WRITE) and cell in self.pending:
            owner, group = self.pending.pop(cell)
            if self.waited[owner] <= group:
                what = {COPY: ("store", "cp"), READ: ("load", "ld"), WRITE: ("store", "st")}[kind]
                self.found.setdefault(what, (lane, cell, owner))


@cache
def interpret() -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_80")


def random_program(seed: int) -> Sequence[Step]:
    generator = np.random.default_rng(seed)
    program: list[Step] = []
    for kind in generator.choice(
        [COPY, COMMIT, *WAIT, WAIT_ALL, READ, WRITE], 40, p=[0.3, 0.2, *[0.08] * 3, 0.02, 0.14, 0.1]
    ):
        chosen = int(generator.integers(0, 1 << 32)) if generator.random() < 0.6 else 0xFFFF_FFFF
        program.append((int(kind), chosen, int(generator.integers(32)), 1 + 2 * int(generator.integers(4))))
    return program


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int) -> None:
    program, model = random_program(seed), Model()
    for step in program:
        model.run(step)
    steps = np.array(program, np.int64).astype(np.uint32).view(np.int32).reshape(-1)
    values, output = np.ones(128, np.float32), np.zeros(128, np.float32)
    findings = interpret()["interpret"][1, 32](steps, len(program), values, output).findings
    seen: dict[tuple[str, str], tuple[int, int, int]] = {}
    for finding in findings:
        other = re.search(r"of thread \((\d+),0,0\) may", finding.message)
        assert other is not None
        assert finding.thread is not None
        assert finding.address is not None
        what = str(finding.access), finding.message[1:3]
        seen[what] = finding.thread[0], finding.address // 16, int(other[1])
    assert seen == model.found
