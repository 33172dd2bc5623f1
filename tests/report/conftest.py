"""Fixtures of the report's tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the tests share `launches.py`, which is no test
