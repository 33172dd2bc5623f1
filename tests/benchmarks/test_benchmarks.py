"""The benchmarks run, and their JSON says all of it; how fast anything was is no matter of a test."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest

RUN = Path(__file__).parents[2] / "benchmarks" / "run.py"
NAMES = ("import_time", "divergence", "memory_growth", "verdicts")

NUMBER = {"type": "number"}
TEXT = {"type": "string", "minLength": 1}
FIGURE = {
    "type": "object",
    "additionalProperties": False,
    "required": [
        "benchmark", "quantity", "value", "unit", "peer", "ratio", "target", "verdict", "samples", "sample_unit",
        "details",
    ],
    "properties": {
        "benchmark": TEXT,
        "quantity": TEXT,
        "value": NUMBER,
        "unit": TEXT,
        "peer": {
            "type": ["object", "null"],
            "additionalProperties": False,
            "required": ["name", "value"],
            "properties": {"name": TEXT, "value": {"type": "number", "exclusiveMinimum": 0}},
        },
        "ratio": {"type": ["number", "null"]},
        "target": {
            "type": ["object", "null"],
            "additionalProperties": False,
            "required": ["sense", "bound", "of"],
            "properties": {"sense": {"enum": ["≥", "≤"]}, "bound": NUMBER, "of": {"enum": ["value", "ratio"]}},
        },
        "verdict": {"enum": ["met", "missed", "informative", "not judged"]},
        "samples": {"type": "array", "items": NUMBER},
        "sample_unit": TEXT,
        "details": {"type": "object", "additionalProperties": {"type": ["number", "string"]}},
    },
}  # fmt: skip
DOCUMENT = {
    "type": "object",
    "additionalProperties": False,
    "required": [
        "schema", "date", "commit", "quick", "machine", "busyness", "versions", "figures", "failures",
    ],
    "properties": {
        "schema": {"const": "triptych.benchmarks/1"},
        "date": TEXT,
        "commit": TEXT,
        "quick": {"type": "boolean"},
        "machine": {
            "type": "object",
            "required": ["processor", "cores", "physical_cores", "memory_bytes", "system"],
        },
        "busyness": {
            "type": "object",
            "required": ["load_before", "load_after", "others_share", "stolen_share"],
            "additionalProperties": {"type": "number", "minimum": 0},
        },
        "versions": {"type": "object", "required": ["python", "triptych", "numpy", "llvmlite"]},
        "figures": {"type": "array", "minItems": 1, "items": FIGURE},
        "failures": {"type": "object", "additionalProperties": TEXT},
    },
}  # fmt: skip


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RUN), *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("benchmarks") / "quick.json"
    done = run(*NAMES, "--quick", "--json", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    for heading in ("benchmark", "ours", "peer", "ratio", "target", "verdict"):
        assert heading in done.stdout
    return json.loads(file.read_text(encoding="utf-8"))


def test_json_has_its_shape(quick: dict[str, Any]) -> None:
    jsonschema.validate(quick, DOCUMENT)


def test_every_benchmark_asked_for_has_figures(quick: dict[str, Any]) -> None:
    assert not quick["failures"]
    assert {figure["benchmark"] for figure in quick["figures"]} == set(NAMES)


def test_quick_sizes_judge_nothing(quick: dict[str, Any]) -> None:
    assert quick["quick"]
    for figure in quick["figures"]:
        assert figure["verdict"] == ("informative" if figure["target"] is None else "not judged")


def test_ratios_are_ours_over_the_peers(quick: dict[str, Any]) -> None:
    beside_peers = [figure for figure in quick["figures"] if figure["peer"] is not None]
    assert beside_peers
    for figure in beside_peers:
        assert math.isclose(figure["ratio"], figure["value"] / figure["peer"]["value"])
    assert all(figure["ratio"] is None for figure in quick["figures"] if figure["peer"] is None)


def test_json_alone_goes_to_standard_output() -> None:
    done = run("import_time", "--quick", "--json", "-")
    assert done.returncode == 0, done.stderr
    jsonschema.validate(json.loads(done.stdout), DOCUMENT)
    assert "import triptych" in done.stderr


@pytest.mark.skipif(find_spec("triton_viz") is not None, reason="triton-viz is installed")
def test_a_peer_that_is_missing_is_named() -> None:
    done = run("nki_interpreters", "--quick")
    assert done.returncode == 1
    assert "triton-viz is not installed" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_unknown_names_are_usage_errors() -> None:
    done = run("sgem", "--quick")
    assert done.returncode == 2
    assert "sgemm" in done.stderr
