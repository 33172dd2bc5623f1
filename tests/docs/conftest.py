"""Fixtures of the documentation's tests."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # the tests share `blocks.py`, which is no test
sys.path.insert(0, str(HERE.parents[1] / "docs"))  # and read what makes the pages
