"""The tests of random kernels share modules that are no tests, some with those of the instruction table."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "gpu_table")]
