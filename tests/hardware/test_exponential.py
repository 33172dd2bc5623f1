"""The rules of `exponential.py` against a recording of an H200 (`benchmarks/hardware/record_exponential.py`)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
from exponential import EXPONENTS, exponential, operands

RECORD = Path(__file__).parents[1] / "data" / "hardware" / "exponential-h200.json"


def test_the_rules_give_the_devices_bits() -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert record["device"].startswith("NVIDIA H200")
    assert len(record["results"]) == 2 * len(EXPONENTS)
    for given, digest in zip(operands(), record["results"], strict=True):
        found = exponential(given).astype(np.uint32)
        assert hashlib.sha256(found.tobytes()).hexdigest()[:16] == digest, f"from {given[0]:#x} on"


def test_the_rules_are_near_the_function() -> None:
    values = np.array([-126.5, -3.0, -0.75, -(2.0**-24), 0.0, 0.5, 1.0, 127.25], np.float32)
    found = exponential(values.view(np.uint32)).astype(np.uint32).view(np.float32)
    np.testing.assert_allclose(found[1:], np.exp2(values[1:].astype(np.float64)), rtol=2.0**-22)
    assert found[0] == 0
