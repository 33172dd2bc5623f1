"""The JSON document: its schema holds, and its schema refuses what is not one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from launches import GPU_CHECKS, VEC_ADD, finding, gpu_launch, line, nki_launch, stopped_launch
from triptych.core.checks import Severity
from triptych.core.counter_table import Provenance
from triptych.core.errors import MemoryFault
from triptych.core.languages import LANGUAGES
from triptych.core.launches import Finding
from triptych.core.memory_access import MemoryAccess
from triptych.core.source import SourceLocation
from triptych.execution.tuning import Tuning
from triptych.report import document, dumps, is_clean, schema
from triptych.report.facts import FACTS


def whole() -> dict[str, Any]:
    where, frame = SourceLocation("k.cu", 3), SourceLocation("k.cu", 9)
    launches = [
        gpu_launch(lines=(line("k.cu", 3, VEC_ADD, frame),), findings=(finding(Severity.ERROR, where, frame),)),
        gpu_launch(values={}, findings=(finding(Severity.NOTICE),)),
        nki_launch(),
        stopped_launch(),
    ]
    tunings = [Tuning("k", "NVIDIA H100", "64, fp32", {"BLOCK=32": 1e-6, "BLOCK=4096": math.inf}, "BLOCK=32", where)]
    return document(launches, script="x.py", arguments=["--n", "3"], exit_status=0, tunings=tunings)


def validate(value: dict[str, Any]) -> None:
    validator: Any = jsonschema.Draft202012Validator(schema())
    validator.validate(value)


def test_what_autotuners_chose() -> None:
    (tuning,) = json.loads(dumps(whole()))["tunings"]
    assert tuning == {
        "kernel": "k", "chip": "NVIDIA H100", "problem": "64, fp32", "chosen": "BLOCK=32",
        "configurations": [
            {"label": "BLOCK=32", "estimate_s": 1e-6}, {"label": "BLOCK=4096", "estimate_s": None},
        ],
        "call_site": {"file": "k.cu", "line": 3},
    }  # fmt: skip


def test_infinite_intensity_is_null() -> None:
    value = json.loads(
        dumps(document([gpu_launch(values={"flops.f32": 64})], script="x.py", arguments=[], exit_status=0))
    )
    validate(value)
    roofline = value["launches"][0]["roofline"]
    assert (roofline["flops"], roofline["bytes"], roofline["intensity"], roofline["bound"]) == (64, 0, None, "compute")
    assert not [name for name in value["launches"][0]["model"] if name.startswith("intensity.")]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_a_document_follows_the_schema() -> None:
    value = json.loads(dumps(whole()))
    validate(value)
    launch = value["launches"][0]
    assert value["schema"] == "triptych.run/1"
    assert (launch["cluster"], launch["cooperative"], launch["call_site"]) == ([1, 1, 1], False, None)
    assert launch["counters"]["flops.f32"] == {"value": 1048576, "unit": "FLOPs", "provenance": "counted on PTX"}
    assert launch["roofline"]["intensity"] == 1 / 12
    assert launch["roofline"]["bytes"] == 12582912
    assert launch["model"]["estimate"]["provenance"] == "modelled"
    assert launch["lines"][0]["frames"] == [{"file": "k.cu", "line": 9}]
    assert launch["findings"][0]["severity"] == "error"
    assert (launch["findings"][0]["thread"], launch["findings"][0]["block"]) == (None, None)
    assert launch["checks"] == list(GPU_CHECKS)
    assert value["launches"][1]["findings"][0]["file"] is None
    assert value["launches"][2]["counters"]["flops.vector"]["provenance"] == "counted on NKI"
    assert [one["stopped"] for one in value["launches"]] == [False, False, False, True]
    stopped = value["launches"][3]
    assert (stopped["roofline"], stopped["model"], stopped["counters"], stopped["notes"]) == (None, {}, {}, [])
    assert value["clean"] is False
    assert document([nki_launch()], script="x.py", arguments=[], exit_status=0)["clean"] is True


def test_what_a_fault_of_memory_knows() -> None:
    fault = MemoryFault(
        "bad store", hint="look", thread=(1, 0, 0), block=(2, 0, 0),
        memory=MemoryAccess("store", "global", 2**40, 4, "out"),
    )  # fmt: skip
    launch = gpu_launch(values={}, findings=(Finding.of_fault(fault),), stopped=True)
    value = document([launch], script="x.py", arguments=[], exit_status=1, error=fault)
    validate(json.loads(dumps(value)))
    (found,) = value["launches"][0]["findings"]
    assert (found["hint"], found["access"], found["space"], found["address"]) == ("look", "store", "global", 2**40)
    assert (found["bytes"], found["allocation"], found["thread"], found["block"]) == (4, "out", [1, 0, 0], [2, 0, 0])
    assert value["error"]["hint"] == "look"


def test_the_keys_of_a_launch() -> None:
    launch = whole()["launches"][0]
    promised = [
        "kernel",
        "language",
        "chip",
        "target",
        "grid",
        "block",
        "counters",
        "model",
        "roofline",
        "lines",
        "checks",
        "findings",
    ]
    assert set(promised) <= set(launch)
    roofline = [
        "flops",
        "bytes",
        "memory_level",
        "intensity",
        "ridge_point",
        "bound",
        "floor_s",
        "estimate_s",
        "fraction",
    ]
    assert set(roofline) <= set(launch["roofline"])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), "triptych.run/2"),
        (("extra",), 1),
        (("launches", 0, "kernel"), ""),
        (("launches", 0, "language"), "opencl"),
        (("launches", 0, "grid"), [1, 1]),
        (("launches", 0, "counters", "flops.f32"), 3),
        (("launches", 0, "counters", "flops.f32", "provenance"), "guessed"),
        (("launches", 0, "roofline", "fraction"), 1.5),
        (("launches", 0, "roofline", "bound"), "latency"),
        (("launches", 0, "findings", 0, "severity"), "fatal"),
    ],
)
def test_the_schema_refuses(path: tuple[str | int, ...], value: object) -> None:
    broken = json.loads(dumps(whole()))
    place: Any = broken
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        validate(broken)


def test_no_infinity_gets_out() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps({"value": float("inf")})


def test_the_text_of_a_line_is_read(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("first\n    second();\n", encoding="utf-8")
    launch = gpu_launch(lines=(line(str(source), 2, VEC_ADD),))
    value = document([launch], script="x.py", arguments=[], exit_status=0)
    assert value["launches"][0]["lines"][0]["text"] == "second();"


@pytest.mark.parametrize(
    ("severity", "clean"), [(Severity.NOTICE, True), (Severity.WARNING, False), (Severity.ERROR, False)]
)
def test_a_notice_alone_is_clean(severity: Severity, clean: bool) -> None:
    assert is_clean([gpu_launch(), gpu_launch(findings=(finding(severity),))]) is clean


def test_the_schema_has_the_tables_languages_severities_and_provenances() -> None:
    definitions = schema()["$defs"]
    launch = definitions["launch"]
    assert launch["required"] == list(launch["properties"])
    assert FACTS.keys() <= launch["properties"].keys()
    assert launch["properties"]["language"]["enum"] == list(LANGUAGES)
    assert definitions["finding"]["properties"]["severity"]["enum"] == [one.value for one in Severity]
    assert definitions["counter"]["properties"]["provenance"]["enum"] == [one.value for one in Provenance]
