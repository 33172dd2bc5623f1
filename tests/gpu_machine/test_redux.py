"""`redux.sync` against numpy, over whole and partial masks and in parted warps."""

import numpy as np
import pytest

import triptych as tt

OPERATIONS = {
    "add": np.add, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
SOURCE = """
extern "C" __global__ void whole(const {type}* x, {type}* y) {{
  y[threadIdx.x] = __reduce_{operation}_sync(~0u, x[threadIdx.x]);
}}
extern "C" __global__ void parted(const {type}* x, {type}* y) {{
  int lane = threadIdx.x & 31;
  if (lane % 3 == 0) y[threadIdx.x] = __reduce_{operation}_sync(0x49249249u, x[threadIdx.x]);
  else y[threadIdx.x] = 0;
}}
"""


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", ["int", "unsigned"])
def test_reductions(operation: str, kind: str) -> None:
    if operation in ("and", "or", "xor") and kind == "int":
        kind = "unsigned"  # CUDA has the bitwise ones for unsigned alone
    dtype = np.int32 if kind == "int" else np.uint32
    module = tt.cuda.compile(SOURCE.format(type=kind, operation=operation), arch="sm_80")
    limits = np.iinfo(dtype)
    x = np.random.default_rng(3).integers(limits.min, limits.max, 64, dtype, endpoint=True)
    x[:4] = [limits.min, limits.max, 0, 1]
    y = np.zeros(64, dtype)
    reduce = OPERATIONS[operation].reduce
    module["whole"][1, 64](x, y)
    assert np.array_equal(y, np.repeat([reduce(x[:32]), reduce(x[32:])], 32).astype(dtype))
    module["parted"][1, 64](x, y)
    thirds = np.arange(64) % 32 % 3 == 0
    for warp in (slice(0, 32), slice(32, 64)):
        chosen = thirds[warp]
        assert (y[warp][chosen] == reduce(x[warp][chosen]).astype(dtype)).all()
        assert not y[warp][~chosen].any()
