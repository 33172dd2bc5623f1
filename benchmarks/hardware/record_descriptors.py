"""Records which bytes `wgmma` reads by a descriptor on the GPU of this machine: needs ptxas and the driver.

python benchmarks/hardware/record_descriptors.py OUTPUT.npz
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests" / "hardware")]

from descriptor_cases import BLOCK, ENTRY, SOURCE, cases, empty, places
from device import Device
from recording import origin, store

import triptych as tt


def main(output: Path) -> None:
    """Compiles, assembles, runs, writes."""
    device = Device()
    text = re.sub(r"\.version \S+", ".version 8.6", tt.cuda.compile(SOURCE, arch="sm_90a").ptx)
    found = empty()
    device.launch(device.assemble(text), ENTRY, cases(), found, len(cases()), BLOCK)
    store(output, {"places": places(found)}, record=origin())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
