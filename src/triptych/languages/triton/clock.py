"""The modelled clock: it advances by each launch's estimate, and by nothing else.

Every time that Triton's host side sees (`do_bench`, the autotuner, events) is therefore **modelled**: the roofline
estimate of what the machine counted, on the chip in force. Host work and torch operations take no time on it.
"""

from __future__ import annotations

from triptych.execution.profile import LaunchReport


class Clock:
    """Modelled seconds. It stands until `start()`, so that launches that nobody times are not placed on a roofline."""

    def __init__(self) -> None:
        """At zero, standing."""
        self._seconds = 0.0
        self._running = False

    def start(self) -> None:
        """From now on each launch advances the clock."""
        self._running = True

    def add(self, launch: LaunchReport) -> None:
        """A launch ran."""
        if self._running:
            self._seconds += launch.roofline.estimate_s

    def now(self) -> float:
        """Modelled seconds."""
        return self._seconds
