"""The table of formats."""

from __future__ import annotations

from collections.abc import Mapping

from triptych.core.errors import UnknownName
from triptych.judge.formats.format import Format
from triptych.judge.formats.gpu_mode import GPU_MODE
from triptych.judge.formats.kernelbench import KERNELBENCH
from triptych.judge.formats.solution import SOLUTION

FORMATS: Mapping[str, Format] = {row.name: row for row in (SOLUTION, KERNELBENCH, GPU_MODE)}
"""By name."""


def format_of(name: str) -> Format:
    """The format of a name.

    Raises:
        UnknownName: where there is none.
    """
    if name not in FORMATS:
        raise UnknownName.of("format", name, FORMATS)
    return FORMATS[name]
