"""The activation is quick: what only launches need is imported with the first one."""

from __future__ import annotations

import subprocess
import sys

ACTIVATION = """
import sys
import torch, triton
before = set(sys.modules)
import triptych
triptych.triton.activate()
print(*sorted(set(sys.modules) - before))
"""
WITH_THE_FIRST_LAUNCH = {
    "triptych.core.launches",
    "triptych.core.plan",
    "triptych.core.counters",
    "triptych.chips.reading",
    "triptych.execution.launch_report",
    "triptych.execution.run",
    "triptych.languages.triton.arguments",
    "triptych.languages.triton.launcher",
    "triptych.languages.triton.proton",
    "tomllib",
    "llvmlite",
}
IN_NO_CASE = ("cli", "demo", "judge", "kernels", "memory_wall", "operators", "report", "sandbox")
PACKAGES_THAT_WAIT = ("execution.capture", "gpu", "model", "neuron")
"""They import what they offer when it is first used."""
CAPTURED_ARRAYS = {f"triptych.execution.capture.{name}" for name in ("arrays", "views")}
"""What is asked of an argument, to tell it from others."""


def test_the_activation_imports_nothing_that_only_launches_need() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ACTIVATION], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert "triptych.languages.triton.torch_cuda.install" in imported, "torch's device is simulated by then"
    assert not imported & WITH_THE_FIRST_LAUNCH
    folders = [f"triptych.{name}" for name in (*IN_NO_CASE, "languages.cuda", "languages.nki", "languages.ptx")]
    assert not imported.intersection(folders)
    inside = tuple(f"triptych.{name}." for name in PACKAGES_THAT_WAIT)
    assert {name for name in imported if name.startswith(inside)} == CAPTURED_ARRAYS
