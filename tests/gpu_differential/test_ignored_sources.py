"""`cp.async` with a predicate that has its source ignored: zeros, and no place that could be wrong."""

from __future__ import annotations

import numpy as np
import pytest
from both import HEADER, run_both

from triptych import MemoryFault


def kernel(size: int, copy: str) -> str:
    """Thread i copies `size` bytes; %p holds in every third lane, whose source is null."""
    return f"""{HEADER}.visible .entry k(.param .u64 in, .param .u64 out)
{{
.reg .pred %p; .reg .b32 %t, %s, %x<4>; .reg .b64 %i, %o, %z, %policy; .shared .align 16 .b8 tile[512];
mov.u32 %t, %tid.x; ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mad.wide.u32 %i, %t, {size}, %i;
mad.wide.u32 %o, %t, 16, %o; mov.u32 %s, tile; mad.lo.u32 %s, %t, 16, %s; rem.u32 %x0, %t, 3; setp.eq.u32 %p, %x0, 0;
selp.b64 %i, 0, %i, %p; mov.b32 %x0, -1; st.shared.v4.b32 [%s], {{%x0, %x0, %x0, %x0}};
createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;
{copy}
cp.async.wait_all; ld.shared.v4.b32 {{%x0, %x1, %x2, %x3}}, [%s]; st.global.v4.b32 [%o], {{%x0, %x1, %x2, %x3}};
ret; }}
"""


def run(size: int, copy: str) -> np.ndarray:
    data = np.arange(32 * size, dtype=np.uint8)
    return run_both(kernel(size, copy), "k", 1, 32, data, np.zeros((32, 16), np.uint8)).arrays[1]


def wanted(size: int) -> np.ndarray:
    result = np.full((32, 16), 0xFF, np.uint8)
    result[:, :size] = np.arange(32 * size, dtype=np.uint8).reshape(32, size)
    result[::3, :size] = 0
    return result


@pytest.mark.parametrize("size", [4, 8, 16])
def test_zeros_where_the_source_is_ignored(size: int) -> None:
    np.testing.assert_array_equal(run(size, f"cp.async.ca.shared.global [%s], [%i], {size}, %p;"), wanted(size))


@pytest.mark.parametrize(
    "copy",
    [
        "cp.async.cg.shared::cta.global.L2::128B [%s], [%i], 16, %p;",
        "cp.async.cg.shared.global.L2::cache_hint [%s], [%i], 16, %p, %policy;",
        "not.pred %p, %p; cp.async.ca.shared.global [%s], [%i], 16, !%p;",
    ],
)
def test_with_hints_and_negated(copy: str) -> None:
    np.testing.assert_array_equal(run(16, copy), wanted(16))


def test_a_source_that_is_not_ignored_is_read() -> None:
    with pytest.raises(MemoryFault, match="global__ read of size 8"):
        run(8, "not.pred %p, %p; cp.async.ca.shared.global [%s], [%i], 8, %p;")
