"""The compile target of a kernel: AWS's own environment variable, else the target in force."""

from __future__ import annotations

import os

from triptych.execution.profile import active_target
from triptych.neuron.isa import Hardware, hardware

OVERRIDE = "NEURON_PLATFORM_TARGET_OVERRIDE"
"""AWS's variable: a target or a generation of NeuronCores (`trn2`, `gen3`)."""


def target_hardware() -> Hardware:
    """The limits of the target.

    Raises:
        UnknownName: where the variable names no NeuronCore.
    """
    return hardware(os.environ.get(OVERRIDE) or active_target("neuron"))
