"""The table of checks: machines ask it which are in force, a finding names a row, `--check` takes the names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache


class Severity(Enum):
    """How bad a finding is."""

    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"


class When(Enum):
    """Which launches a check looks at."""

    ALWAYS = "always on"
    """All: nothing turns it off."""
    DEFAULT = "on by default"
    """Those for which no check was asked for by name, and those for which this one was."""
    REQUEST = "on request"
    """Those for which it was asked for by name."""


MACHINES: Mapping[str, str] = {"gpu": "the GPU", "neuron": "the NeuronCore"}
"""The machines, as sentences name them."""


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """A row; there is one object for each check, and it is equal to itself alone."""

    name: str
    severity: Severity
    """Of its findings."""
    when: Mapping[str, When]
    """By machine; it sees nothing on one that is not named."""
    sees: str
    """What it sees, in one sentence."""


_GPU_ALWAYS = {"gpu": When.ALWAYS}
_NEURON_DEFAULT = {"neuron": When.DEFAULT}

MEMCHECK = Check(
    "memcheck",
    Severity.ERROR,
    {"gpu": When.ALWAYS, "neuron": When.ALWAYS},
    "Accesses outside of every allocation, misaligned ones, stores to what is read-only; stacks that overflow, calls of"
    " what is no function, and memory freed that was not allocated. On Neuron indices known only when a kernel"
    " runs that leave a tensor, and stores to what is read-only.",
)
ASSERT = Check("assert", Severity.ERROR, _GPU_ALWAYS, "An `assert` (Triton's `tl.device_assert`) that does not hold.")
TRAP = Check(
    "trap", Severity.ERROR, _GPU_ALWAYS, "A `trap`: the author or the compiler put it where execution must not come."
)
BUDGET = Check(
    "budget",
    Severity.ERROR,
    {"gpu": When.ALWAYS, "neuron": When.ALWAYS},
    "A warp that runs more loop iterations than its budget (`TRIPTYCH_BUDGET`): most likely it loops for ever. On"
    " Neuron a kernel whose trace grows beyond its limit (`TRIPTYCH_TRACE_LIMIT`), or whose Python records nothing for"
    " as long as the budget allows.",
)
DEADLOCK = Check(
    "deadlock",
    Severity.ERROR,
    {"gpu": When.ALWAYS, "neuron": When.ALWAYS},
    "Threads that wait for each other, so that none can go on; on Neuron programs of a grid, or ranks.",
)
SYNCCHECK = Check(
    "synccheck",
    Severity.ERROR,
    _GPU_ALWAYS,
    "Barriers that are misused: a number that no barrier of a block has, threads that are no whole warps, or threads"
    " that wait at one barrier for different numbers of others. Mbarriers that were not initialised, or get more"
    " arrivals or bytes than they take. Those that wait for ever are `deadlock`'s. Instructions"
    " for all threads of a warp (`.sync.aligned`) that only some of them execute. As warnings,"
    " lanes that a membermask of their own does not name, shuffles from lanes that do not take part, and registers of"
    " matrices that are touched before a `wgmma.wait_group`, or multiplied without a `wgmma.fence`.",
)
ASYNCCHECK = Check(
    "asynccheck",
    Severity.ERROR,
    {"gpu": When.DEFAULT},
    "Shared memory that is read or written before an asynchronous copy into it (`cp.async`, bulk, TMA, `st.async`) was"
    " waited for, and memory that is written while a `wgmma` or a bulk copy may still read it: both lines are named.",
)
INITCHECK = Check(
    "initcheck", Severity.ERROR, _NEURON_DEFAULT, "Stores to HBM of data that come from memory that was never written."
)
OUTPUTCHECK = Check(
    "outputcheck", Severity.WARNING, _NEURON_DEFAULT, "Outputs that have elements without a defined value at the end."
)
RACECHECK = Check(
    "racecheck", Severity.ERROR, _NEURON_DEFAULT, "Stores of different programs of the grid to the same elements."
)
PSUMCHECK = Check(
    "psumcheck",
    Severity.WARNING,
    _NEURON_DEFAULT,
    "Products accumulated in PSUM onto what no matmul has written, or replacing what another engine wrote.",
)
RANGECHECK = Check(
    "rangecheck",
    Severity.WARNING,
    _NEURON_DEFAULT,
    "Arguments for which the Scalar engine's approximation of a function does not hold.",
)
VIEWCHECK = Check(
    "viewcheck",
    Severity.WARNING,
    {"gpu": When.DEFAULT},
    "Accesses that leave what the launch passed of an array, and stay inside the array: a slice's neighbours.",
)
GENERATION = Check(
    "nki.generation",
    Severity.NOTICE,
    _NEURON_DEFAULT,
    "Names and forms that no released `import nki` has, accepted in the mixed style of tutorials.",
)

COMPILER = Check(
    "nki.compiler",
    Severity.WARNING,
    _NEURON_DEFAULT,
    "What AWS's compiler refuses and its simulator accepts, in kernels that are traced leniently"
    " (`TRIPTYCH_NKI_LENIENT`); else it is an error.",
)

TIMECHECK = Check(
    "timecheck",
    Severity.NOTICE,
    {"neuron": When.REQUEST},
    "What makes a kernel slow, by its simulated timeline: small or strided transfers, float32 products, buffers too few"
    " or too large to overlap, movement that nothing hides, work on the busier engine; each with what it costs.",
)

CHECKS: Mapping[str, Check] = {
    row.name: row
    for row in (
        *(MEMCHECK, ASSERT, TRAP, BUDGET, DEADLOCK, SYNCCHECK),
        *(VIEWCHECK, ASYNCCHECK, INITCHECK, OUTPUTCHECK, RACECHECK, PSUMCHECK, RANGECHECK, GENERATION, COMPILER),
        TIMECHECK,
    )
}
"""The table, by name."""


@cache
def in_force(machine: str, asked: tuple[str, ...] | None = None) -> frozenset[Check]:
    """The checks that look at a launch on a machine.

    Args:
        machine: `gpu` or `neuron`.
        asked: the names that were asked for: they take the place of the checks that are on by default. None: nobody
            asked, and those are in force. What is always on is so in either case.
    """
    return frozenset(row for row in CHECKS.values() if _looks(row, row.when.get(machine), asked))


def _looks(row: Check, when: When | None, asked: tuple[str, ...] | None) -> bool:
    if when is None or when is When.ALWAYS:
        return when is not None
    return when is When.DEFAULT if asked is None else row.name in asked


@cache
def names_of(checks: frozenset[Check]) -> tuple[str, ...]:
    """Their names, in the order of the table."""
    return tuple(name for name, row in CHECKS.items() if row in checks)
