"""The compile targets that there are, by machine."""

from __future__ import annotations

from triptych.core.errors import UnknownName

TARGET_PREFIX = {"gpu": "sm_", "neuron": ("trn", "inf")}
"""How the names of a machine's targets begin."""
_CAPABILITIES = (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)
"""Compute capabilities that NVRTC 13 compiles for."""
_TARGETS = (*(f"sm_{number}" for number in _CAPABILITIES), "trn1", "trn2", "trn3", "inf2")


def check_target(target: str) -> str:
    """The target itself.

    Raises:
        UnknownName: where no compiler has it; `sm_90a` and the like count as `sm_90`.
    """
    plain = target[:-1] if target.startswith("sm_") and target[-1:] in ("a", "f") else target
    if plain not in _TARGETS:
        raise UnknownName.of("compile target", target, _TARGETS)
    return target
