"""The judge's benchmark has candidates that are new: what it times must not be what a cache knows."""

from __future__ import annotations

import re
import runpy
from collections import Counter
from pathlib import Path
from typing import Protocol

import pytest

from triptych import judge


class Kernel(Protocol):
    """As the module has it, which lies on no path of the tests'."""

    operator: str
    language: str
    function: str
    dtype: str

    def candidate(self, version: int) -> judge.Candidate: ...


MODULE = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "candidates.py"))
KERNELS: tuple[Kernel, ...] = MODULE["kernels"]()
KERNEL_NAMES = {
    "cuda": r"__global__ void\s+(?:__launch_bounds__\(\w+\)\s+)?(\w+)\(",
    "triton": r"^@triton\.jit.*\ndef (\w+)\(",
    "nki": r"^@nki\.jit.*\ndef (\w+)\(",
}


def names_of_kernels(kernel: Kernel, version: int) -> list[str]:
    source = kernel.candidate(version).source.replace("\\n", "\n")
    return re.findall(KERNEL_NAMES[kernel.language], source, re.MULTILINE)


def test_the_mix_has_every_language_and_goes_from_vec_add_to_attention() -> None:
    assert Counter(one.language for one in KERNELS) == {"cuda": 21, "triton": 14, "nki": 15}
    for language in KERNEL_NAMES:
        assert {"vec_add", "matmul", "attention"} <= {one.operator for one in KERNELS if one.language == language}


def test_no_two_candidates_have_one_name() -> None:
    names = [one.candidate(place).name for place, one in enumerate(KERNELS)]
    assert len(set(names)) == len(names) == 50


@pytest.mark.parametrize("kernel", KERNELS, ids=[f"{one.function}.{one.dtype}.{one.language}" for one in KERNELS])
def test_each_version_has_kernels_of_its_own(kernel: Kernel) -> None:
    first, second = (names_of_kernels(kernel, version) for version in (7, 11))
    assert first
    assert all(name.endswith("_7") for name in first)
    assert [name.removesuffix("_7") for name in first] == [name.removesuffix("_11") for name in second]
    compile(kernel.candidate(7).source, "candidate.py", "exec")
