"""One executed launch as users and reports see it: what the machine said, beside the chip that it is placed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from triptych.chips import Chip
from triptych.core.counters import Counters
from triptych.core.errors import UsageError
from triptych.core.forks import LazyProperty
from triptych.core.launches import Finding, LaunchRecord, Line
from triptych.core.source import SourceLocation
from triptych.execution.modelling import roofline_of, timeline_of

if TYPE_CHECKING:  # a machine is imported when something runs on it, the model when somebody asks
    from triptych.model import Roofline
    from triptych.neuron.timeline import Timeline


@dataclass(frozen=True)
class LaunchReport:
    """One executed launch beside the chip that it is placed on."""

    record: LaunchRecord
    chip: Chip
    remarks: tuple[str, ...] = ()
    """What was asked for and could not be, a chip or a target of another machine; the record's own."""

    @LazyProperty
    def roofline(self) -> Roofline:
        """The launch's place on the chip's roofline, computed when first asked for.

        Raises:
            UsageError: for a launch that a fault stopped: nothing of it was counted to its end.
        """
        if self.stopped:
            raise UsageError(
                f"kernel '{self.kernel}' was stopped by a fault: the launch has no place on a roofline",
                hint="ask launch.stopped before; launch.findings has the fault",
            )
        return roofline_of(self.record, self.chip)

    @property
    def timeline(self) -> Timeline | None:
        """When each instruction of a NeuronCore ran, modelled; None of a GPU's launch and of one that was stopped."""
        return timeline_of(self.record, self.chip)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of its numbers must know."""
        return self.remarks if self.stopped else (*self.remarks, *self.roofline.notes)

    @property
    def stopped(self) -> bool:
        """Whether a fault stopped it: then it has no counters and no roofline."""
        return self.record.stopped

    @property
    def kernel(self) -> str:
        """The kernel's name, as its author wrote it where that is known."""
        return self.record.kernel

    @property
    def language(self) -> str:
        """What the author wrote it in."""
        return self.record.language

    @property
    def target(self) -> str:
        """What it was compiled for (`sm_80`, `trn2`)."""
        return self.record.target

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks along x, y and z."""
        return self.record.shape.grid

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a block along x, y and z."""
        return self.record.shape.block

    @property
    def call_site(self) -> SourceLocation | None:
        """The line of the author's program that launched it, None where there is none."""
        return self.record.call_site

    @property
    def counters(self) -> Counters:
        """What the machine counted."""
        return self.record.counters

    @property
    def lines(self) -> tuple[Line, ...]:
        """The same by source line."""
        return self.record.lines

    @property
    def checks(self) -> tuple[str, ...]:
        """The names of the checks that looked at it."""
        return self.record.checks

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the checks saw."""
        return self.record.findings

    def __repr__(self) -> str:
        """The kernel, its grid and block, the chip and how many findings there are."""
        findings = f", {len(self.findings)} finding{'s' * (len(self.findings) > 1)}" if self.findings else ""
        return f"<{self.kernel} grid={self.grid} block={self.block} on {self.chip.name}{findings}>"
