"""The compile targets that there are: the GPUs' by their compute capabilities, the NeuronCores' by their chips."""

from __future__ import annotations

import re
from collections.abc import Sequence

from triptych.chips import targets
from triptych.core.errors import UnknownName
from triptych.core.gpu_targets import CAPABILITIES, capability_of


def machine_of(target: str) -> str:
    """`gpu` for `sm_…`, `neuron` for any other."""
    return "gpu" if target.startswith("sm_") else "neuron"


def check_target(target: str, machine: str | None = None, capabilities: Sequence[int] = CAPABILITIES) -> str:
    """The target itself.

    Args:
        target: its name.
        machine: the machine whose target it must be (`gpu`, `neuron`); None: that of any.
        capabilities: those that the GPUs' compiler has, as 80 for 8.0.

    Raises:
        UnknownName: where no compiler has it; `sm_90a` and the like count as `sm_90`.
    """
    if capability_of(target) in capabilities and machine != "neuron":
        return target
    known = [f"sm_{one}" for one in capabilities] if machine != "neuron" else []
    known += targets("neuron") if machine != "gpu" else ()
    if target in known:
        return target
    near = _nearest(target, capabilities) if machine != "neuron" else ()
    if near:
        raise UnknownName(f"unknown compile target '{target}'", hint=f"did you mean {' or '.join(near)}?")
    raise UnknownName.of("compile target", target, known)


def _nearest(target: str, capabilities: Sequence[int]) -> list[str]:
    """The three GPUs' targets whose numbers are nearest; none for what has no number."""
    number = re.match(r"(?:sm|compute)_(\d+)", target)
    if number is None:
        return []
    return [f"sm_{one}" for one in sorted(sorted(capabilities, key=lambda one: abs(one - int(number[1])))[:3])]
