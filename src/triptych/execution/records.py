"""What a machine saw of a launch -> its record, with all that is known of it before it runs; who gets to see it."""

from __future__ import annotations

from functools import lru_cache

from triptych import gpu
from triptych.chips import Chip
from triptych.core.checks import MACHINES, names_of
from triptych.core.counters import Counters
from triptych.core.errors import KernelFault
from triptych.core.launches import Account, Finding, LaunchRecord, Observed
from triptych.core.plan import Launch, Program
from triptych.core.source import SourceLocation
from triptych.execution.demangle import readable
from triptych.execution.launch_report import LaunchReport
from triptych.execution.profile import active_checks, asked_here, chip_of, open_profiles
from triptych.execution.targets import machine_of


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


def record_launch(record: LaunchRecord) -> LaunchReport:
    """Notes the launch in every open profile, each with the chip asked of it; returns the innermost one's report.

    A profile of which none was asked takes the innermost's, so that `triptych run` shows what the script chose.
    """
    innermost, target = asked_here()
    report = _report(record, innermost, target)
    for open_profile in open_profiles():
        own = _report(record, open_profile.asked or innermost, open_profile.target)
        same = (own.chip, own.remarks) == (report.chip, report.remarks)
        open_profile.launches.append(report if same else own)
    return report


def _report(record: LaunchRecord, asked: Chip | None, target: str | None) -> LaunchReport:
    chip, machine = chip_of(asked, record.machine), MACHINES[record.machine]
    remarks = [*record.remarks]
    if asked is not None and asked.machine != record.machine:
        remarks.append(f"{asked.title} is not {machine}'s: what ran there is placed on {chip.title}.")
    if target is not None and machine_of(target) != record.machine:
        remarks.append(f"The target {target} is not {machine}'s: what ran there was compiled for {record.target}.")
    return LaunchReport(record, chip, tuple(remarks))
