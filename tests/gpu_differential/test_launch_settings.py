"""The order of blocks and what undefined memory holds, on both executors."""

from __future__ import annotations

import numpy as np
import pytest
from both import HEADER, run_both

from triptych.core.settings import scope

KERNEL = f"""{HEADER}.entry k(.param .u64 out, .param .u64 count)
{{
.reg .b32 %r<9>; .reg .b64 %d<4>; .local .b32 own[2]; .shared .b32 common[2];
ld.param.u64 %d0, [out]; ld.param.u64 %d1, [count];
atom.global.add.u32 %r1, [%d1], 1;
mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mad.lo.u32 %r2, %r3, 10, %r2;
ld.local.u32 %r4, [own+4]; ld.shared.u32 %r5, [common+4];
st.local.u32 [own+4], %r2; st.shared.u32 [common+4], %r2;
mad.wide.u32 %d0, %r1, 16, %d0;
st.global.u32 [%d0], %r2; st.global.u32 [%d0+4], %r4; st.global.u32 [%d0+8], %r5;
ret;
}}
"""


@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize("cluster", [1, 2])
def test_order_of_blocks_and_undefined_memory(order: str, cluster: int) -> None:
    with scope(block_order=order, undefined_byte=0x3C):
        outcome = run_both(
            KERNEL, "k", (4, 3), 1, np.zeros((12, 4), np.uint32), np.zeros(1, np.uint32), cluster=(cluster,)
        )
    found = outcome.arrays[0].reshape(12, 4)
    clusters = [[10 * y + x + rank for rank in range(cluster)] for y in range(3) for x in range(0, 4, cluster)]
    expected = clusters if order == "ascending" else clusters[::-1]
    assert found[:, 0].tolist() == [block for blocks in expected for block in blocks]
    assert (found[:, 1:3] == 0x3C3C3C3C).all()
