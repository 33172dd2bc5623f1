"""synccheck of lanes: what an instruction that names lanes does beyond its mask is told, once a line, and no more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

import triptych as tt
from triptych.core.launches import Finding, Severity
from triptych.core.settings import scope

SOURCE = """
extern "C" __global__ void gone(float* x, int n) {
    int t = threadIdx.x;
    if (t < n)
        x[t] = __shfl_down_sync((1u << n) - 1, x[t], 16);
}
extern "C" __global__ void tail(float* x, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    x[t] += __shfl_xor_sync(0xffffffffu, x[t], 1);
}
extern "C" __global__ void inside(float* x, int n) {
    int t = threadIdx.x, lane = t % 32;
    unsigned half = lane < 16 ? 0xffffu : 0xffff0000u;
    for (int step = 8; step > 0; step /= 2) x[t] += __shfl_xor_sync(half, x[t], step);
    if (lane < n) x[t] += __shfl_sync((1u << n) - 1, x[t], lane / 2) + __shfl_down_sync((1u << n) - 1, x[t], n, 8);
    x[t] = __shfl_up_sync(0xffffffffu, x[t], 3);
}
"""


@pytest.fixture(scope="module")
def kernels() -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_80")


@pytest.fixture(autouse=True, params=[1, 2])
def workers(request: pytest.FixtureRequest) -> Iterator[None]:
    with scope(workers=request.param):
        yield


def only(findings: tuple[Finding, ...]) -> Finding:
    (finding,) = findings
    assert (finding.check, finding.severity) == ("synccheck", Severity.WARNING)
    return finding


@pytest.mark.parametrize("threads", [32, 2, 70])
def test_a_shuffle_from_lanes_that_went_another_way(kernels: tt.cuda.CudaModule, threads: int) -> None:
    x = np.arange(1, 129, dtype=np.float32)
    found = only(kernels["gone"][1, threads](x, 2).findings)
    assert found.message.startswith("lane 0 of warp 0 reads lane 16, which does not take part in its 'shfl.sync.down")
    assert (found.thread, found.block) == ((0, 0, 0), (0, 0, 0))
    assert found.where is not None
    assert "__shfl_down_sync" in Path(found.where.file).read_text("utf-8").splitlines()[found.where.line - 1]
    assert x[:4].tolist() == [0, 0, 3, 4]


def test_it_is_the_first_thread_of_the_first_block_that_is_told(kernels: tt.cuda.CudaModule) -> None:
    x = np.ones(64 * 40, np.float32)
    found = only(kernels["tail"][40, 64](x, 64 * 39 + 32 + 5).findings)
    assert found.message.startswith("lane 4 of warp 1 reads lane 5,")
    assert (found.thread, found.block) == ((36, 0, 0), (39, 0, 0))
    assert (x[: 64 * 39 + 32 + 4] == 2).all()
    assert x[64 * 39 + 32 + 4] == 1


def test_what_keeps_to_its_mask_is_silent(kernels: tt.cuda.CudaModule) -> None:
    assert kernels["inside"][2, 64](np.ones(64, np.float32), 8).findings == ()
    assert kernels["tail"][2, 64](np.ones(128, np.float32), 96).findings == ()


LEFT_OUT: Mapping[str, str] = {
    "shfl": "shfl.sync.idx.b32 %r2, %r1, 7, 31, MASK;",
    "vote": "vote.sync.ballot.b32 %r2, %p1, MASK;",
    "match": "match.any.sync.b32 %r2, %r1, MASK;",
    "redux": "redux.sync.add.u32 %r2, %r1, MASK;",
    "elect": "elect.sync %r2|%p2, MASK;",
    "barrier": "bar.warp.sync MASK;",
}


@pytest.mark.parametrize("mask", ["0xFFFFFFD7", "%r4", "%r5"], ids=["constant", "of the launch", "of each lane"])
@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_lane_that_its_own_mask_does_not_name(name: str, mask: str) -> None:
    text = f""".version 8.0
.target sm_90
.address_size 64
.entry k(.param .u64 results, .param .u32 mask)
{{
.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<2>;
mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 9; ld.param.u32 %r4, [mask]; mov.u32 %r2, 0;
setp.lt.u32 %p3, %r1, 16; selp.b32 %r5, %r4, -1, %p3;
{LEFT_OUT[name].replace("MASK", mask)}
ld.param.u64 %d0, [results]; mad.wide.u32 %d0, %r1, 4, %d0; st.global.u32 [%d0], %r2; ret;
}}
"""
    kernel = tt.ptx.compile(text)["k"]
    found = only(kernel[1, 32](np.zeros(32, np.uint32), np.uint32(0xFFFF_FFD7)).findings)
    assert found.message.startswith("lane 3 of warp 0 executes '")
    assert "with a membermask that does not name it" in found.message
    assert found.thread == (3, 0, 0)
    assert kernel[1, 32](np.zeros(32, np.uint32), np.uint32(0xFFFF_FFFF)).findings == () or mask.startswith("0x")
