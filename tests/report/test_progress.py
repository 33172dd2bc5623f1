"""The progress bar: on a terminal, and only for a launch that takes long."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from triptych.report.progress import LaunchProgress


@pytest.mark.parametrize(
    ("terminal", "delay_s", "shown"), [(True, 0.0, True), (True, 60.0, False), (False, 0.0, False)]
)
def test_bar(terminal: bool, delay_s: float, shown: bool) -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=80)
    with LaunchProgress("vec_add", console, delay_s) as progress:
        for done in range(11):
            progress(done, 10)
    assert ("vec_add" in stream.getvalue()) is shown
