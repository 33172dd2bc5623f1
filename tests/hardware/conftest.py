"""The recorded rows are run by the kernels of the table's own tests."""

from __future__ import annotations

import sys
from pathlib import Path

for _folder in ("gpu_table", "hardware"):
    sys.path.insert(0, str(Path(__file__).parents[1] / _folder))
