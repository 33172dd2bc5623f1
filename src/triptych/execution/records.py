"""What a machine saw of a launch -> its record, with all that is known of it before it runs."""

from __future__ import annotations

from functools import lru_cache

from triptych import gpu
from triptych.core.checks import names_of
from triptych.core.counters import Counters
from triptych.core.errors import KernelFault
from triptych.core.launches import Account, Finding, LaunchRecord, Observed
from triptych.core.plan import Launch, Program
from triptych.core.source import SourceLocation
from triptych.execution.demangle import readable
from triptych.execution.profile import active_checks


def record_of(
    program: Program,
    launch: Launch,
    seen: Observed | KernelFault,
    call_site: SourceLocation | None,
    remarks: tuple[str, ...] = (),
) -> LaunchRecord:
    """The record of a launch that ran; of one that a fault stopped nothing was counted, and the fault is its finding.

    The program has the launch's entry: it ran.
    """
    stopped = isinstance(seen, KernelFault)
    observed = Observed(Account.of(Counters({})), (Finding.of_fault(seen),)) if stopped else seen
    return LaunchRecord(
        kernel=readable(launch.entry),
        machine=program.machine,
        language=program.language,
        target=program.target,
        shape=launch.shape,
        static_shared_bytes=_static_shared_bytes(program.machine, program.text, launch.entry, launch.shared_bytes),
        account=observed.account,
        findings=observed.findings,
        checks=names_of(active_checks(program.machine)),
        call_site=call_site,
        stopped=stopped,
        remarks=remarks,
        executed=observed.executed,
        sample=observed.sample,
        touched=observed.touched,
    )


@lru_cache(maxsize=256)
def _static_shared_bytes(machine: str, text: str, entry: str, dynamic_bytes: int) -> int:
    return gpu.load(text).entries[entry].static_part(dynamic_bytes) if machine == "gpu" else 0
