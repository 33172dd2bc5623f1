"""The recorded rows are run by the kernels of the table's own tests, and recorders are tested by their modules."""

from __future__ import annotations

import sys
from pathlib import Path

for _folder in ("tests/gpu_table", "tests/hardware", "benchmarks/hardware"):
    sys.path.insert(0, str(Path(__file__).parents[2] / _folder))
