"""The modelled clock: it advances by each launch's estimate, and by nothing else.

Every time that Triton's host side sees (`do_bench`, the autotuner, events) is therefore **modelled**: the roofline
estimate of what the machine counted, on the chip in force. Host work and torch operations take no time on it.
"""

from __future__ import annotations

from triptych.execution.launch_report import LaunchReport

TICKS_PER_SECOND = 10**15
TICKS_PER_MILLISECOND = 10**12


class Clock:
    """Modelled femtoseconds. It stands until `start()`: launches that nobody times are not placed on a roofline.

    Whole ticks, so that equal launches take equal times whenever they run.
    """

    def __init__(self) -> None:
        """At zero, standing."""
        self._ticks = 0
        self._running = False

    def start(self) -> None:
        """From now on each launch advances the clock."""
        self._running = True

    def add(self, launch: LaunchReport) -> None:
        """A launch ran."""
        if self._running:
            self._ticks += round(launch.roofline.estimate_s * TICKS_PER_SECOND)

    def now(self) -> int:
        """Ticks since the driver was made."""
        return self._ticks
