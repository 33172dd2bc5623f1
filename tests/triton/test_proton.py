"""Proton on the modelled clock: sessions, scopes, metrics, and the file that `triton.profiler.viewer` reads."""

# Triton's language and host side have no types.
# ruff: noqa: ANN001, ANN201, ANN401
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportArgumentType=false, reportInvalidTypeForm=false

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from triptych.core.errors import UnsupportedFeature
from triptych.languages.triton import activate, deactivate

proton: Any = import_module("triton.profiler")
jit: Any = triton.jit


def launched(grid: object, kernel: object, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"name": f"doubled {arguments['n']}", "flops32": float(arguments["n"])}


@jit(launch_metadata=launched)
def double(x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + offsets, tl.load(x + offsets, mask=offsets < n) * 2, mask=offsets < n)


def nodes(path: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """The metrics of each node of a session's file, by the names on the way to it."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}

    def visit(node: Any, names: tuple[str, ...]) -> None:
        for child in node["children"]:
            below = (*names, child["frame"]["name"])
            found[below] = child["metrics"]
            visit(child, below)

    root, devices = json.loads(path.with_suffix(".hatchet").read_text("utf-8"))
    assert devices["CUDA"]["0"]["num_sms"] == 108
    assert root["frame"]["name"] == "ROOT"
    visit(root, ())
    return found


def test_a_session_has_what_ran_while_it_was_active(active: None, tmp_path: Path) -> None:
    x = np.ones(1024, np.float32)
    milliseconds: Any = triton.testing.do_bench(lambda: double[8,](x, 1024, BLOCK=128))
    with pytest.warns(RuntimeWarning, match="are modelled"):
        session = proton.start(str(tmp_path / "one"))
    proton.deactivate(session)
    double[8,](x, 1024, BLOCK=128)
    proton.activate(session)
    with proton.scope("outer", {"bytes": 100}):
        for _ in range(3):
            double[8,](x, 1024, BLOCK=128)
        with proton.scope("inner"):
            double[8,](x, 1024, BLOCK=128)
    proton.finalize(session)
    found = nodes(tmp_path / "one")
    kernel = {"count": 3, "time (ns)": round(3e6 * milliseconds), "device_id": "0", "device_type": "CUDA"}
    assert found == {
        ("outer",): {"bytes": 100},
        ("outer", "double"): kernel,
        ("outer", "inner"): {},
        ("outer", "inner", "double"): {**kernel, "count": 1, "time (ns)": round(1e6 * milliseconds)},
    }


def test_the_hook_names_launches_and_adds_their_metrics(active: None, tmp_path: Path) -> None:
    x = np.ones(1024, np.float32)
    with pytest.warns(RuntimeWarning, match="are modelled"):
        proton.start(str(tmp_path / "two"), hook="triton")
    for n in (1024, 1024, 512):
        double[8,](x, n, BLOCK=128)
    proton.finalize()
    found = nodes(tmp_path / "two")
    assert {names: (metrics["count"], metrics["flops32"]) for names, metrics in found.items()} == {
        ("doubled 1024",): (2, 2048.0),
        ("doubled 512",): (1, 512.0),
    }


REFUSED: dict[str, tuple[Callable[[str], object], str]] = {
    "trace": (lambda path: proton.start(path, data="trace"), "Proton's data 'trace'"),
    "python": (lambda path: proton.start(path, context="python"), "Proton's context 'python'"),
    "instrumentation": (lambda path: proton.start(path, backend="instrumentation"), "Proton's mode|instrumentation"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_simulated_is_refused(active: None, tmp_path: Path, case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(UnsupportedFeature, match=message):
        call(str(tmp_path / "refused"))
    assert not [*tmp_path.iterdir()]


def test_the_library_is_put_back() -> None:
    library = import_module("triton._C.libproton").proton
    deactivate()
    before = library.start
    with activate(chip="a100", target="sm_80"):
        assert library.start is not before
    assert library.start is before
