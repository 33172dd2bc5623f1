"""`cp.async` whose source is shorter than what it writes: zeros behind it, and places that are as for whole copies."""

from __future__ import annotations

import numpy as np
import pytest

import triptych as tt

TEXT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 given, .param .u32 source, .param .u32 target) {
  .reg .b64 %i, %o, %d; .reg .b32 %t, %a, %s, %n, %x; .reg .pred %p; .shared .align 16 .b8 tile[512];
  mov.u32 %t, %tid.x; ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; ld.param.u32 %n, [given];
  shl.b32 %a, %t, 4; cvt.u64.u32 %d, %a; add.u64 %i, %i, %d; add.u64 %o, %o, %d; mov.u32 %s, tile; add.u32 %s, %s, %a;
  ld.param.u32 %x, [source]; cvt.u64.u32 %d, %x; add.u64 %i, %i, %d; ld.param.u32 %x, [target]; add.u32 %a, %s, %x;
  mov.b32 %x, -1; st.shared.v4.b32 [%s], {%x, %x, %x, %x};
  setp.eq.u32 %p, %t, 5; selp.u32 %n, SIZE, %n, %p;
  cp.async.ca.shared.global [%a], [%i], SIZE, %n;
  cp.async.wait_all;
  ld.shared.b32 %x, [%s]; st.global.b32 [%o], %x; ld.shared.b32 %x, [%s+4]; st.global.b32 [%o+4], %x;
  ld.shared.b32 %x, [%s+8]; st.global.b32 [%o+8], %x; ld.shared.b32 %x, [%s+12]; st.global.b32 [%o+12], %x;
  ret;
}
"""


def run(size: int, given: int, source: int = 0, target: int = 0, room: int = 512) -> np.ndarray:
    """The block's tile behind the copies, 16 bytes a thread; thread 5's copy is whole."""
    data, out = np.arange(room, dtype=np.uint16).astype(np.uint8), np.zeros((32, 16), np.uint8)
    tt.ptx.compile(TEXT.replace("SIZE", str(size)))["k"][1, 32](data, out, given, source, target)
    return out


@pytest.mark.parametrize("size", [4, 8, 16])
def test_the_rest_is_zeros(size: int) -> None:
    for given in (0, 1, size - 1, size):
        wanted = np.full((32, 16), 0xFF, np.uint8)
        wanted[:, :size] = np.arange(512).reshape(32, 16)[:, :size] % 256
        wanted[np.arange(32) != 5, given:size] = 0
        np.testing.assert_array_equal(run(size, given), wanted)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_places_are_multiples_of_the_whole_size(size: int) -> None:
    with pytest.raises(tt.MemoryFault, match=rf"read of size {size} (?s:.*)misaligned: a multiple of {size} is needed"):
        run(size, 3, source=1)
    with pytest.raises(
        tt.MemoryFault, match=rf"write of size {size} (?s:.*)misaligned: a multiple of {size} is needed"
    ):
        run(size, 3, target=1)


def test_bounds_are_those_of_what_is_read_and_of_all_that_is_written() -> None:
    run(16, 3, room=496 + 3)
    with pytest.raises(tt.MemoryFault, match="global__ read"):
        run(16, 3, room=496 + 2)
    with pytest.raises(tt.MemoryFault, match="shared__ write of size 16"):
        run(16, 3, target=16)
