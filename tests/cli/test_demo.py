"""`triptych demo`: three languages, right against float64, on the roofline."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
from command import triptych

from triptych.demo.problems import ROWS, add_problem, gelu_problem
from triptych.report import schema

APART = ("matvec", "add_bias", "gelu")
"""The kernels that `gelu_linear` takes the place of."""


def test_demo(tmp_path: Path) -> None:
    html, trace = tmp_path / "demo.html", tmp_path / "demo.trace.json"
    done = triptych("demo", "--json", "-", "--html", str(html), "--trace", str(trace))
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    validator: Any = jsonschema.Draft202012Validator(schema())
    validator.validate(value)
    launches = value["launches"]
    for language in ("cuda", "triton", "nki"):
        those = {launch["kernel"]: launch for launch in launches if launch["language"] == language}
        assert set(those) == {"vec_add", *APART, "gelu_linear"}
        assert those["vec_add"]["roofline"]["intensity"] == 1 / 12
        apart, fused = ({name: those[name]["roofline"] for name in names} for names in (APART, ("gelu_linear",)))
        spared = sum(one["bytes"] for one in apart.values()) - fused["gelu_linear"]["bytes"]
        assert spared == 2 * 2 * 4 * ROWS, "two vectors, each written and read"
        assert fused["gelu_linear"]["estimate_s"] < sum(one["estimate_s"] for one in apart.values())
    assert html.read_text(encoding="utf-8").count('<section class="launch"') == len(launches)
    slices = [event for event in json.loads(trace.read_text(encoding="utf-8"))["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in slices if "counters" in event["args"]] == [one["kernel"] for one in launches]


def test_demo_for_a_person() -> None:
    done = triptych("demo", "--chip", "a100-80", COLUMNS="80")
    assert done.returncode == 0, done.stderr
    assert "A100" in done.stdout
    assert done.stdout.count(" right ") == 9
    assert "WRONG" not in done.stdout
    assert done.stdout.count("3 → 1  4145 → 4113  48 → 16  64 KiB") == 3
    assert "FLOP/byte" in done.stdout
    assert "One problem has other FLOPs in each language" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_check_has_power() -> None:
    for problem in (add_problem(), gelu_problem()):
        right = problem.case.truth.astype(np.float32)
        assert problem.largest_error(right) <= 1.0
        assert problem.largest_error(np.zeros_like(right)) > 1.0
        assert problem.largest_error(right.astype(np.float16).astype(np.float32)) > 1.0
        one_wrong = right.copy()
        one_wrong.flat[17] += 0.01
        assert problem.largest_error(one_wrong) > 1.0
        one_wrong.flat[17] = np.nan
        assert problem.largest_error(one_wrong) == math.inf
        assert problem.largest_error(right[:-1]) == math.inf
