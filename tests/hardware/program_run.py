"""The recorded programs: their arrays, their launches on triptych's machine, and how far outputs are apart."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from program_cases import Case

from triptych.core.handles import Storage
from triptych.core.plan import Launch, Plan
from triptych.core.serialise import unpack
from triptych.core.settings import scope
from triptych.gpu import run_launch

RECORD = Path(__file__).parents[1] / "data" / "hardware" / "programs-h200.npz"
_DIGITS: Mapping[str, int] = {"f16": 10, "bf16": 7, "f32": 23}
"""Of the types' mantissas, the first not counted."""


@dataclass(frozen=True, slots=True)
class Output:
    """An array of a launch as bytes, and the elements' type."""

    data: NDArray[np.uint8]
    dtype: str
    is_output: bool = True

    @property
    def bits(self) -> NDArray[np.uint32]:
        """The elements' raw bits, those of 16 as the upper half: bf16 is then f32."""
        if self.dtype == "f32":
            return self.data.view(np.uint32)
        return self.data.view(np.uint16).astype(np.uint32)

    @property
    def numbers(self) -> NDArray[np.float64]:
        """The elements' values."""
        if self.dtype == "bf16":
            return (self.bits << 16).view(np.float32).astype(np.float64)
        return self.data.view(np.float16 if self.dtype == "f16" else np.float32).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Difference:
    """How far outputs are from those expected."""

    share: float
    """Of the elements whose bits differ."""
    units: float
    """The largest difference of two numbers, in units of the last place of the expected one."""
    absolute: float
    """The largest difference of two numbers."""

    def as_json(self) -> Mapping[str, float]:
        """For the record."""
        return asdict(self)


def difference(found: Output, expected: Output) -> Difference:
    """How far an output is from another; where one is no finite number, its bits alone count."""
    ours, theirs = found.numbers, expected.numbers
    with np.errstate(invalid="ignore"):
        apart = np.where(np.isfinite(ours) & np.isfinite(theirs), np.abs(ours - theirs), 0)
    _, exponent = np.frexp(np.where(np.isfinite(theirs), theirs, 1))
    least = -14 if expected.dtype == "f16" else -126
    unit = np.ldexp(1.0, np.maximum(exponent - 1, least) - _DIGITS[expected.dtype])
    return Difference(float((found.bits != expected.bits).mean()), float((apart / unit).max()), float(apart.max()))


def digest_of(*arrays: NDArray[Any]) -> str:
    """A digest of arrays' bytes."""
    together = hashlib.sha256()
    for array in arrays:
        together.update(np.ascontiguousarray(array).view(np.uint8).tobytes())
    return together.hexdigest()[:16]


def arrays_of(case: Case, launch: Launch) -> Mapping[Storage, Output]:
    """The arrays of a launch: the case's inputs in their order, then zeros for outputs; without those of no bytes."""
    handles = {handle.storage: handle for handle in launch.handles}
    inputs = case.inputs()
    arrays: dict[Storage, Output] = {}
    for place, (storage, handle) in enumerate(handles.items()):
        if place < len(inputs):
            data = np.ascontiguousarray(inputs[place]).reshape(-1).view(np.uint8).copy()
            assert data.nbytes == storage.size, f"{case.name}: input {place} has {storage.size} bytes"
        else:
            data = np.zeros(storage.size, np.uint8)
        arrays[storage] = Output(data, handle.dtype.name, place >= len(inputs))
    return arrays


def run_here(case: Case, number: int, numerics: str) -> list[Output]:
    """The outputs of a recorded case on triptych's machine."""
    plan = recorded_plan()
    launch = plan.nodes[number]
    assert isinstance(launch, Launch)
    arrays = arrays_of(case, launch)
    memory = {storage: array.data for storage, array in arrays.items()}
    with scope(tensor_numerics=numerics, workers=1):
        run_launch(plan.programs[launch.program], launch, memory)
    return [array for array in arrays.values() if array.is_output]


def same_bits(number: int, outputs: Sequence[Output]) -> list[bool]:
    """Whether each output of a case has the device's bits."""
    digests = record()["cases"][number]["outputs"]
    return [digest_of(one.data) == digest for one, digest in zip(outputs, digests, strict=True)]


def shown(number: int, outputs: Sequence[Output]) -> list[Output]:
    """The device's outputs of a case that is shown; `outputs` say their types."""
    return [replace(one, data=recorded()[f"outputs{number}.{place}"]) for place, one in enumerate(outputs)]


@cache
def recorded() -> Mapping[str, NDArray[Any]]:
    """The record's arrays."""
    with np.load(RECORD) as data:
        return dict(data)


@cache
def record() -> Mapping[str, Any]:
    """What the record says."""
    return json.loads(str(recorded()["record"]))


@cache
def recorded_plan() -> Plan:
    """The programs, and a launch for each case."""
    return unpack(lzma.decompress(recorded()["plan"].tobytes()))
