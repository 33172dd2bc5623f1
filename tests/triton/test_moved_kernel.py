"""A kernel that has moved to another file is reported there, though Triton's disk cache knows its source and line."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np

import triptych
from triptych.languages.triton import activate

SOURCE = """
import triton
import triton.language as tl

@triton.jit
def plus_one(x):
    return x + 1

@triton.jit
def moved(x, N: tl.constexpr):
    at = x + tl.arange(0, N)
    tl.store(at, plus_one(tl.load(at)))
"""


def load(folder: Path) -> ModuleType:
    folder.mkdir()
    path = folder / "kernels.py"
    path.write_text(SOURCE)
    spec = spec_from_file_location("kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lines_are_those_of_the_file_where_it_lies(tmp_path: Path) -> None:
    for name in ("before", "after"):
        module = load(tmp_path / name)
        with activate(chip="a100"), triptych.profile() as profile:
            assert module.moved.cache_key.isalnum()
            module.moved[(1,)](np.zeros(32, np.float32), 32)
        (launch,) = profile.launches
        assert {line.where.file for line in launch.lines} == {str(tmp_path / name / "kernels.py")}
