"""Which line of the author's program launched a kernel."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import triptych as tt
from triptych.core.serialise import digest
from triptych.core.source import SourceLocation
from triptych.execution.call_site import call_site
from triptych.languages import launcher

SOURCE = """
extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }
extern "C" __global__ void bad(float *x) { x[threadIdx.x + 32] = 2.0f; }
"""
HERE = __file__


def line() -> int:
    """The caller's line."""
    return sys._getframe(1).f_lineno  # pyright: ignore[reportPrivateUsage]


def loaded(file: str, text: str) -> dict[str, object]:
    """What a module of that file would define."""
    names: dict[str, object] = {}
    exec(compile(text, file, "exec"), names)
    return names


def test_each_launch_knows_its_line() -> None:
    module = tt.cuda.compile(SOURCE)
    x = np.ones(32, np.float32)
    two = 0
    with tt.profile(chip="h100") as profile:
        first = module["twice"][1, 32](x)
        one = line() - 1
        for _ in range(2):
            module["twice"][1, 32](x)
            two = line() - 1
        with pytest.raises(tt.MemoryFault):
            module["bad"][1, 32](x)
    assert first.call_site == SourceLocation(HERE, one)
    assert [launch.call_site for launch in profile.launches[1:3]] == [SourceLocation(HERE, two)] * 2
    stopped = profile.launches[3]
    assert (stopped.stopped, stopped.call_site) == (True, SourceLocation(HERE, two + 3))


def test_a_plan_that_is_run_later_is_launched_where_it_is_run() -> None:
    x = np.ones(32, np.float32)
    bound = tt.cuda.compile(SOURCE)["twice"][1, 32]
    here, there = bound.plan(x), bound.plan(x)
    assert digest(here) == digest(there)
    run = tt.plans.run_plan(here, {"x": x})
    at = line() - 1
    assert run.launches[0].call_site == SourceLocation(HERE, at)


def test_installed_packages_and_the_standard_library_are_passed_over() -> None:
    library = "def call(f):\n    return f()\n"
    for file in ("/venv/lib/python3/site-packages/library/ops.py", f"{Path(launcher.__file__).parent}/other/run.py"):
        call = loaded(file, library)["call"]
        assert callable(call)
        assert call(call_site) == SourceLocation(HERE, line())
    own = loaded("<string>", library)["call"]
    assert callable(own)
    assert own(call_site) == SourceLocation("<string>", 2)
