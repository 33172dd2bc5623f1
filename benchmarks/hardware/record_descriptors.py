"""Records which bytes `wgmma` reads by a descriptor on the GPU of this machine: needs ptxas and the driver.

python benchmarks/hardware/record_descriptors.py OUTPUT.npz
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests" / "hardware")]

from descriptor_cases import BLOCK, ENTRY, SOURCE, cases, empty, places  # noqa: E402  (the tests' cases)
from device import Device  # noqa: E402  (a script beside this one)

import triptych as tt  # noqa: E402


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(output: Path) -> None:
    """Compiles, assembles, runs, writes."""
    device = Device()
    text = re.sub(r"\.version \S+", ".version 8.6", tt.cuda.compile(SOURCE, arch="sm_90a").ptx)
    found = empty()
    device.launch(device.assemble(text), ENTRY, cases(), found, len(cases()), BLOCK)
    record = {
        "device": _output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").strip(),
        "ptxas": _output("ptxas", "--version").splitlines()[-2],
        "date": date.today().isoformat(),
    }
    np.savez_compressed(output, places=places(found), record=json.dumps(record))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
