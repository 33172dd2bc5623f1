"""The modelled clock: it advances by each launch's estimate and by that of torch's operators on the device.

Every time that Triton's host side sees (`do_bench`, the autotuner, events) is therefore **modelled**: the roofline
estimate of what the machine counted, on the chip in force. Host work takes no time on it.
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
            self.advance(launch.roofline.estimate_s)

    def advance(self, seconds: float) -> None:
        """The device has worked for so long."""
        self._ticks += round(seconds * TICKS_PER_SECOND)

    def now(self) -> int:
        """Ticks since the driver was made."""
        return self._ticks
