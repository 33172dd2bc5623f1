"""The compile target of a kernel: AWS's own environment variable, else the target in force."""

from __future__ import annotations

import os

from triptych.execution.profile import active_target
from triptych.neuron.isa import Hardware, hardware

OVERRIDE = "NEURON_PLATFORM_TARGET_OVERRIDE"
"""AWS's variable: a target or a generation of NeuronCores (`trn2`, `gen3`)."""


def target_hardware(asked: str | None = None) -> Hardware:
    """The limits of the target: AWS's variable says it, else the kernel's decorator (`asked`), else the one in force.

    Raises:
        UnknownName: where the variable names no NeuronCore.
    """
    return hardware(os.environ.get(OVERRIDE) or asked or active_target("neuron"))
