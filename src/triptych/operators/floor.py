"""How fast an operator can be on a chip at best: its least work at the chip's peaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triptych.chips import Chip
from triptych.core.dtypes import DType
from triptych.operators.operator import Operator, Values

_MATRIX_PIPES: Mapping[str, tuple[str, ...]] = {
    "f32": ("tensor.f32", "tensor.tf32"),
    "f16": ("tensor.f16",),
    "bf16": ("tensor.bf16",),
    "s8": ("tensor.s8", "tensor.bf16"),
    "f8e4m3fn": ("tensor.fp8", "tensor.f16"),
}
"""Where products of T may run, by T; the fastest of a chip's counts. Several products of TF32 make one of f32."""
_PLAIN_PIPES = ("vector", "scalar", "gpsimd")
"""Of a NeuronCore, which work side by side; a GPU's is that of f32, or of T."""


@dataclass(frozen=True, slots=True)
class Floor:
    """The longest of what an operator's least work takes, each by itself. Modelled: peaks are taken for achievable."""

    seconds: float
    bound: str
    """`memory`, `matrix` or `plain`: whose work takes longest."""


def floor(operator: Operator, size: Values, dtype: DType, chip: Chip) -> Floor:
    """The least time of an operator at a size, in a type T, on a chip; without what a launch costs."""
    seconds = parts(operator, size, dtype, chip)
    bound = max(seconds, key=lambda part: seconds[part])
    return Floor(seconds[bound], bound)


def parts(operator: Operator, size: Values, dtype: DType, chip: Chip) -> Mapping[str, float]:
    """The seconds that an operator's least bytes take (`memory`), and its least FLOPs, each at the chip's peak."""
    return {
        "memory": operator.least_bytes(size, dtype) / chip.memory_bytes_per_s,
        "matrix": operator.matrix_flops(size) / _matrix_peak(dtype, chip),
        "plain": operator.plain_flops(size, chip.machine) / _plain_peak(dtype, chip),
    }


def _matrix_peak(dtype: DType, chip: Chip) -> float:
    pipes = _MATRIX_PIPES.get(dtype.name, ())
    return max(_plain_peak(dtype, chip), *(chip.flops_per_s.get(pipe, 0.0) for pipe in pipes), 0.0)


def _plain_peak(dtype: DType, chip: Chip) -> float:
    if chip.machine == "neuron":
        return sum(chip.flops_per_s[pipe] for pipe in _PLAIN_PIPES)
    return max(chip.flops_per_s["f32"], chip.flops_per_s.get(dtype.name, 0.0))
