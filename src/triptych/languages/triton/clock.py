"""The modelled clock: it advances by each launch's estimate and by that of torch's operators on the device.

Every time that Triton's host side sees (`do_bench`, the autotuner, events) is therefore **modelled**: the roofline
estimate of what the machine counted, on the chip in force. Host work takes no time on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # with all that a launch is, which comes with the first one
    from triptych.execution.launch_report import LaunchReport

TICKS_PER_SECOND = 10**15
TICKS_PER_MILLISECOND = 10**12
TICKS_PER_NANOSECOND = 10**6


class Clock:
    """Modelled femtoseconds. It stands until `start()`: launches that nobody times are not placed on a roofline.

    Whole ticks, so that equal launches take equal times whenever they run.
    """

    def __init__(self) -> None:
        """At zero, standing."""
        self._ticks = 0
        self._running = False
        self.listener: Callable[[str, int], None] | None = None
        """Told of all that takes time: what it was, and its ticks."""

    @property
    def running(self) -> bool:
        """Whether somebody times what runs."""
        return self._running

    def start(self) -> None:
        """From now on each launch advances the clock."""
        self._running = True

    def add(self, launch: LaunchReport) -> None:
        """A launch ran."""
        if self._running:
            self.advance(ticks_of(launch.roofline.estimate_s), launch.kernel)

    def advance(self, ticks: int, what: str) -> None:
        """The device has worked for so long."""
        self._ticks += ticks
        if self.listener is not None:
            self.listener(what, ticks)

    def now(self) -> int:
        """Ticks since the driver was made."""
        return self._ticks


def ticks_of(seconds: float) -> int:
    """Seconds as whole ticks."""
    return round(seconds * TICKS_PER_SECOND)
