"""The table of checks: what is in force, what a finding may name, and that every fault is a check's."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from triptych.core.checks import CHECKS, MACHINES, MEMCHECK, RACECHECK, Check, Severity, When, in_force, names_of
from triptych.core.errors import BarrierMisuse, BudgetExceeded, DeadlockError, KernelFault, MemoryFault
from triptych.core.launches import Finding
from triptych.core.memory_access import MemoryAccess
from triptych.core.source import SourceLocation

ALWAYS = {
    "gpu": ("memcheck", "assert", "trap", "budget", "deadlock", "synccheck"),
    "neuron": ("memcheck", "budget", "deadlock"),
}
DEFAULT = {
    "gpu": ("viewcheck", "asynccheck"),
    "neuron": ("initcheck", "outputcheck", "racecheck", "psumcheck", "rangecheck", "nki.generation", "nki.compiler"),
}
REQUEST = {"gpu": (), "neuron": ("timecheck",)}


def test_rows_are_named_by_themselves_and_say_what_they_see() -> None:
    for name, row in CHECKS.items():
        assert row.name == name
        assert row.when
        assert row.when.keys() <= MACHINES.keys()
        assert row.sees.endswith(".")
        assert "," not in name


@pytest.mark.parametrize("machine", MACHINES)
def test_where_nobody_asks_those_by_default_are_in_force(machine: str) -> None:
    assert names_of(in_force(machine)) == ALWAYS[machine] + DEFAULT[machine]


@pytest.mark.parametrize("machine", MACHINES)
def test_names_take_the_place_of_the_default_and_never_of_what_is_always_on(machine: str) -> None:
    assert names_of(in_force(machine, ())) == ALWAYS[machine]
    assert names_of(in_force(machine, tuple(CHECKS))) == ALWAYS[machine] + DEFAULT[machine] + REQUEST[machine]
    asked = names_of(in_force(machine, ("racecheck", "budget")))
    assert asked == ALWAYS[machine] + (("racecheck",) if machine == "neuron" else ())


def test_a_check_on_request_is_in_force_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Check("timecheck", Severity.ERROR, {"gpu": When.REQUEST}, "Kernels that take longer than they should.")
    monkeypatch.setitem(CHECKS, row.name, row)  # pyright: ignore[reportArgumentType]  a dict, typed as what readers may do
    in_force.cache_clear()
    try:
        assert row not in in_force("gpu")
        assert row not in in_force("gpu", ("memcheck",))
        assert row in in_force("gpu", ("memcheck", "timecheck"))
        assert row not in in_force("neuron", ("timecheck",))
    finally:
        in_force.cache_clear()


def test_a_finding_names_a_row() -> None:
    with pytest.raises(ValueError, match="'memchek' is not in the table of checks: memcheck, assert, trap"):
        Finding("memchek", Severity.ERROR, "a message")
    where = SourceLocation("k.py", 7)
    assert Finding.of(RACECHECK, "a message", where) == Finding("racecheck", Severity.ERROR, "a message", where)


def _faults(kind: type[KernelFault] = KernelFault) -> Iterator[type[KernelFault]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _faults(below)


def test_every_fault_is_a_finding_of_a_check_that_is_always_on() -> None:
    assert {*_faults()} >= {KernelFault, MemoryFault, BarrierMisuse, BudgetExceeded, DeadlockError}
    for kind in _faults():
        assert CHECKS[kind.check.name] is kind.check
        assert When.ALWAYS in kind.check.when.values()
        assert Finding.of_fault(kind("what")).check == kind.check.name
    always = {check for check in CHECKS.values() if check.when.get("gpu") is When.ALWAYS}
    assert {kind.check for kind in _faults()} == always


def test_a_faults_fields_are_its_finding_s_place() -> None:
    where, frames = SourceLocation("k.cu", 3), (SourceLocation("k.cu", 9),)
    fault = MemoryFault(
        "what", where=where, hint="do", frames=frames, kernel="k", thread=(1, 2, 3), block=(4, 5, 6),
        memory=MemoryAccess("store", "global", 2**63 + 8, 16, "out"),
    )  # fmt: skip
    assert Finding.of_fault(fault) == Finding(
        "memcheck", MEMCHECK.severity, "what", where, frames, thread=(1, 2, 3), block=(4, 5, 6), hint="do",
        memory=MemoryAccess("store", "global", 2**63 + 8, 16, "out"),
    )  # fmt: skip
    for one in (fault, pickle.loads(pickle.dumps(fault))):
        assert (one.message, one.where, one.hint, one.frames, one.kernel) == ("what", where, "do", frames, "k")
        assert (one.thread, one.block) == ((1, 2, 3), (4, 5, 6))
        assert (one.access, one.space, one.address, one.bytes) == ("store", "global", 2**63 + 8, 16)
        assert one.allocation == "out"


@pytest.mark.parametrize("name", ["thread", "block", "kernel", "frames", "access", "space", "address", "bytes"])
def test_a_faults_fields_cannot_be_set(name: str) -> None:
    fault = MemoryFault("what")
    assert not getattr(fault, name)
    with pytest.raises(AttributeError):
        setattr(fault, name, None)
