"""The names of the GPUs' compile targets: `sm_90`, and `sm_90a` or `sm_100f` with what one architecture alone has."""

from __future__ import annotations

import re

GPU_TARGET = re.compile(r"sm_(\d{2,3})[af]?")
"""A target's whole name; the group is its compute capability without the point."""
_IN_PTX = re.compile(r"^\s*\.target\s+(sm_\w+)", re.MULTILINE)

CAPABILITIES = (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)
"""Compute capabilities that NVRTC 13 compiles for."""


def capability_of(target: str) -> int | None:
    """90 for `sm_90` and `sm_90a`; None for what is no GPU's target."""
    match = GPU_TARGET.fullmatch(target)
    return None if match is None else int(match[1])


def target_of_ptx(text: str) -> str | None:
    """What a PTX module says that it is for, in its `.target` line; None where it has none."""
    match = _IN_PTX.search(text)
    return None if match is None else match[1]
