"""Records what `ex2.approx.ftz.f32` gives on the GPU of this machine: needs ptxas and the driver, nothing of triptych.

python benchmarks/hardware/record_exponential.py OUTPUT.json

The record has a digest of the results for each exponent and sign of the operands of `tests/hardware/exponential.py`.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "tests" / "hardware")]

from device import Device
from exponential import operands
from recording import origin

BLOCK = 128
_KERNEL = """.version 8.0
.target sm_90
.address_size 64

.visible .entry exponential(.param .u64 inputs, .param .u64 outputs) {
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    .reg .f32 %f<2>;

    ld.param.u64 %d0, [inputs];
    ld.param.u64 %d1, [outputs];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r0, %r1, %r2;
    mul.wide.u32 %d2, %r3, 4;
    add.u64 %d0, %d0, %d2;
    add.u64 %d1, %d1, %d2;
    ld.global.f32 %f0, [%d0];
    ex2.approx.ftz.f32 %f1, %f0;
    st.global.f32 [%d1], %f1;
    ret;
}
"""


def main(output: Path) -> None:
    """Assembles, runs, writes."""
    device = Device()
    cubin = device.assemble(_KERNEL)
    digests: list[str] = []
    for given in operands():
        found = np.zeros_like(given)
        device.launch(cubin, "exponential", given, found, len(given) // BLOCK, BLOCK)
        digests.append(hashlib.sha256(found.tobytes()).hexdigest()[:16])
    record = {
        **origin(),
        "results": digests,
    }
    output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
