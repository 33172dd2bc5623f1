"""`triptych run` of a script that wants a module which is not installed: Python's error, and how to get the module."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import script, triptych


@pytest.mark.parametrize(("name", "advice"), [("torch", "pip install torch"), ("triton", "pip install 'triton>=3.6'")])
def test_it_says_how_to_get_it(name: str, advice: str, tmp_path: Path) -> None:
    path, file = script(tmp_path, f"import sys; sys.modules['{name}'] = None", f"import {name}"), tmp_path / "run.json"
    done = triptych("run", "--json", str(file), path)
    assert done.returncode == 1
    assert f"ModuleNotFoundError: import of {name} halted" in done.stderr
    assert advice in done.stderr
    error = json.loads(file.read_text())["error"]
    assert (error["kind"], advice in error["hint"]) == ("ModuleNotFoundError", True)
