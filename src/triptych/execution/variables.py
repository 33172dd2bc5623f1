"""Variables of modules as the host stores and reads them: on the device of this process, and in a plan.

What the host stored is noted, so that the plan of a launch can bring it along.
"""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from triptych import gpu
from triptych.core.errors import PlanError
from triptych.core.forks import StateLock
from triptych.core.handles import Storage
from triptych.core.plan import Program, SetVariable, bytes_of
from triptych.execution.memory import Memory, memory

_devices: WeakKeyDictionary[Memory, gpu.DeviceMemory] = WeakKeyDictionary()
"""What kernels keep on the device itself, beside the arrays: arrays alone need no machine."""
_stored: dict[str, tuple[SetVariable, ...]] = {}
"""By a module's key, what the host has stored in its variables, in order; what later stores covered is left out."""
_lock = StateLock()


def device_of(arrays: Memory) -> gpu.DeviceMemory:
    """The device that has these arrays."""
    return _devices.get(arrays) or _devices.setdefault(arrays, gpu.DeviceMemory())


def variable_here(program: Program, name: str) -> tuple[Storage, NDArray[np.uint8]] | None:
    """A variable of a program on the device of this process: where it lies, and its bytes, in place.

    None where the program has none of that name.

    Raises:
        CaptureError: where launches are recorded, which run on another device.
    """
    recorder = memory().recorder
    if recorder is not None:
        raise recorder.refuse(f"variable '{name}' has an address and values where the plan is run")
    return _find(device_of(memory()), program, name)


def store(device: gpu.DeviceMemory, program: Program, node: SetVariable) -> None:
    """Does on a device what the node says.

    Raises:
        PlanError: where the program has no such variable, or that has no room for the values there.
    """
    found = _find(device, program, node.variable)
    if found is None:
        raise PlanError(f"plan: program '{node.program}' has no variable '{node.variable}'")
    end, contents = node.offset + node.size, found[1]
    if end > contents.size:
        raise PlanError(
            f"plan: bytes {node.offset} to {end} do not lie in variable '{node.variable}', which has {contents.size}"
        )
    contents[node.offset : end] = np.frombuffer(b"".join(map(bytes_of, node.values)), np.uint8)


def store_here(program: Program, node: SetVariable) -> None:
    """Does what the node says on the device of this process, or has it recorded, and notes it for plans of launches."""
    recorder = memory().recorder
    if recorder is not None:
        recorder.set_variable(program, node)
    else:
        store(device_of(memory()), program, node)
    key = gpu.load(program.text).key
    with _lock:
        before = (one for one in _stored.get(key, ()) if not _covers(node, one))
        _stored[key] = (*before, node)


def stored_here(program: Program, name: str = "") -> tuple[SetVariable, ...]:
    """What the host has stored in the program's variables, as a plan says it in which the program has that name."""
    if not _stored or program.machine != "gpu":
        return ()
    with _lock:
        found = _stored.get(gpu.load(program.text).key, ())
    return tuple(replace(node, program=name) for node in found)


def _find(device: gpu.DeviceMemory, program: Program, name: str) -> tuple[Storage, NDArray[np.uint8]] | None:
    return device.variables_of(gpu.load(program.text)).variable(name) if program.machine == "gpu" else None


def _covers(node: SetVariable, other: SetVariable) -> bool:
    """Whether nothing of what the other stores is left behind this one."""
    inside = node.offset <= other.offset and other.offset + other.size <= node.offset + node.size
    return node.variable == other.variable and inside
