"""asynccheck: shared memory that is used too early is told, with both lines; nothing is where the kernel is right."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import triptych as tt
from triptych.core.launches import Finding, Severity
from triptych.gpu.run.kernel import kernel_of

SOURCE = Path(__file__).with_name("asynchronous_kernels.cu")
LINES = SOURCE.read_text("utf-8").splitlines()
COUNT = 1 << 12


@cache
def kernels() -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_90a")


def findings(kernel: str, case: int) -> tuple[Finding, ...]:
    """What this check finds of a kernel in a case; its output is that of a device that waits."""
    values = np.arange(COUNT, dtype=np.float32) % 8
    output = np.zeros(COUNT, np.float32)
    seen = kernels()[kernel][2, THREADS.get(kernel, 64)](values, output, case).findings
    assert output.any()
    return tuple(found for found in seen if found.check == "asynccheck")


def line_of(kernel: str, mark: str) -> int:
    """The line of a kernel's body that ends with a mark."""
    start = next(n for n, line in enumerate(LINES) if f" {kernel}(" in line)
    return next(n for n in range(start, len(LINES)) if LINES[n].endswith(f"// {mark}")) + 1


HAZARDS = [
    (
        "early",
        1,
        "reads",
        "may not have written yet",
        "no wait of that thread covers it (groups committed behind it: 0)",
    ),
    ("early", 2, "reads", "may not have written yet", "no wait of that thread covers it, and it is in no group"),
    (
        "ring",
        2,
        "reads",
        "may not have written yet",
        "no wait of that thread covers it (groups committed behind it: 2)",
    ),
    ("half", 1, "reads", "may not have written yet", "no wait of that thread covers it"),
    ("refill", 1, "writes to", "may still write", "no wait of that thread covers it"),
    ("store_over", 1, "writes to", "may still write", "no wait of that thread covers it"),
    ("told", 1, "reads", "may not have written yet", "no wait of that thread covers it"),
    ("bulk", 1, "reads", "may not have written yet", "nobody has waited for the end of the phase of its mbarrier"),
    ("bulk", 2, "reads", "may not have written yet", "nobody has waited for the end of the phase of its mbarrier"),
    ("bulk_refill", 1, "writes to", "may still write", "nobody has waited for the end of the phase of its mbarrier"),
    ("bulk_store", 1, "writes to", "may still read", "no cp.async.bulk.wait_group of that thread covers it"),
    ("bulk_store", 2, "writes to", "may still read", "no cp.async.bulk.wait_group of that thread covers it"),
    ("forwarded", 1, "reads", "may not have written yet", "nobody has waited for the end of the phase of its mbarrier"),
    ("products", 1, "writes to", "may still read", "no wgmma.wait_group covers it"),
    ("remote", 1, "reads", "may not have written yet", "nobody has waited for the end of the phase of its mbarrier"),
]
THREADS = {"products": 128}
"""A warpgroup's."""


@pytest.mark.parametrize(("kernel", "case", "does", "may", "missing"), HAZARDS, ids=lambda value: str(value)[:12])
def test_what_comes_too_early_is_told_with_both_lines(
    kernel: str, case: int, does: str, may: str, missing: str
) -> None:  # fmt: skip
    (found,) = findings(kernel, case)
    assert (found.check, found.severity) == ("asynccheck", Severity.ERROR)
    assert f" {does} shared memory at address " in found.message
    assert f" {may}: {missing}" in found.message
    places = {place.line for place in (found.where, *found.frames) if place is not None}
    assert line_of(kernel, "too early") in places
    assert f":{line_of(kernel, 'copy')}" in found.message
    assert found.hint is not None
    assert found.block == (0, 0, 0)


@pytest.mark.parametrize("kernel", dict.fromkeys(row[0] for row in HAZARDS))
def test_the_right_program_beside_it_has_no_finding(kernel: str) -> None:
    assert findings(kernel, 0) == ()


@pytest.mark.parametrize(
    ("case", "marks", "missing"),
    [(1, ("too early", "copy"), "nobody has waited"), (2, ("behind the box", "box"), "no cp.async.bulk.wait_group")],
)
def test_boxes_of_tensors(case: int, marks: tuple[str, str], missing: str) -> None:
    values, output = np.arange(128, dtype=np.float32), np.zeros(64, np.float32)
    given = tt.tensor_map(values, (64,))
    assert kernels()["boxes"][1, 64](given, output, 0).findings == ()
    (found,) = kernels()["boxes"][1, 64](given, output, case).findings
    assert missing in found.message
    assert found.where is not None
    assert found.where.line == line_of("boxes", marks[0])
    assert f":{line_of('boxes', marks[1])})" in found.message


def test_kernels_that_nobody_looks_at_have_no_other_code() -> None:
    text = kernels()["early"].program.text
    plain, watched = (kernel_of(text, "early", warps_in_rows=True, watches=watches) for watches in (False, True))
    assert plain.watched is None
    assert plain.linked == plain.facts.linked
    assert not [unit.key for unit in plain.linked if "watch" in unit.key]
    assert watched.watched is not None
    assert watched.watched.granule == 16
    assert watched.linked == watched.watched.linked
    without = tt.cuda.compile('extern "C" __global__ void nothing(int* x) { *x = 1; }', arch="sm_80")
    assert kernel_of(without["nothing"].program.text, "nothing", warps_in_rows=True, watches=True).watched is None


def test_a_launch_for_which_other_checks_were_asked() -> None:
    values, output = np.zeros(COUNT, np.float32), np.zeros(COUNT, np.float32)
    with tt.profile(chip="h100", check="memcheck"):
        assert kernels()["early"][2, 64](values, output, 1).findings == ()
