"""Instructions that share a line of PTX: errors name the one that is at fault."""

from __future__ import annotations

import numpy as np
import pytest

import triptych as tt

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
BODIES = {
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64": (
        "mov.f64 %d0, 0d0000000000000000; mov.f64 %d1, %d0; setp.lt.u32 %p0, %r0, 7; @%p0"
        " mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%d0}, {%d0}, {%d0, %d1};",
        tt.DivergentWarp,
    ),
    "barrier.sync": ("add.u32 %r1, %r0, 16; barrier.sync %r1; mov.u32 %r1, 1;", tt.BarrierMisuse),
    "bar.red.popc.u32": (
        "setp.lt.u32 %p0, %r0, 7; bar.red.popc.u32 %r1, 1, 33, %p0; mov.u32 %r1, 1;", tt.BarrierMisuse
    ),
    "barrier.cluster.wait.aligned": ("mov.u32 %r1, 1; barrier.cluster.wait.aligned; mov.u32 %r1, 2;", tt.BarrierMisuse),
}  # fmt: skip


@pytest.mark.parametrize("opcode", BODIES)
def test_the_instruction_at_fault_is_named(opcode: str) -> None:
    body, error = BODIES[opcode]
    text = f"""{HEADER}.entry k(.param .u64 data)
{{
.reg .pred %p<1>; .reg .b32 %r<2>; .reg .f64 %d<2>; mov.u32 %r0, %tid.x;
{body}
ret;
}}
"""
    with pytest.raises(error) as raised:
        tt.ptx.compile(text)["k"][1, 32](np.zeros(1))
    assert f"'{opcode}', PTX line 7," in str(raised.value)


def test_the_barrier_that_threads_wait_at_is_named() -> None:
    text = f"""{HEADER}.entry k(.param .u64 data)
{{
.reg .pred %p<1>; .reg .b32 %r<2>; mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 7; @%p0 barrier.sync 1, 64; ret;
}}
"""
    with pytest.raises(
        tt.DeadlockError, match=r"wait at 'barrier\.sync' \(barrier 1: 7 of 64 threads have arrived\), <ptx>:6"
    ):
        tt.ptx.compile(text)["k"][1, 32](np.zeros(1))
