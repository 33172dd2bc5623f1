"""The device that Triton sees: a chip (whose roofline) and a compile target (whose PTX), as they are in force now."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from triptych.chips import Chip, GpuChip
from triptych.core.errors import UsageError
from triptych.core.gpu_facts import WARP_SIZE
from triptych.core.gpu_targets import capability_of
from triptych.execution.profile import active_chip_and_target
from triptych.languages.triton.internals import GpuTarget, make_target

FIRST_ORDINAL = 1 << 16
"""Real GPUs' ordinals are small. Triton keeps compiled kernels by ordinal: ours must never meet theirs."""


@dataclass(frozen=True, slots=True)
class Device:
    """A chip with the compute capability compiled for, as Triton writes it (80 for sm_80)."""

    chip: GpuChip
    architecture: int

    @property
    def target(self) -> GpuTarget:
        """Triton's name for it."""
        return make_target(self.architecture)

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability, major and minor."""
        return self.architecture // 10, self.architecture % 10

    def properties(self) -> dict[str, int]:
        """What `get_device_properties` answers: bytes, registers, and clock rates in kHz.

        The chip's data hold a DRAM bandwidth, not a bus: the bus is said to be one byte wide and its clock made to give
        that bandwidth, since Triton (`triton.testing.get_dram_gbps`) only multiplies the two, twice for both edges.
        """
        chip = self.chip
        return {
            "max_shared_mem": chip.shared_bytes_per_block_max,
            "max_num_regs": chip.registers_per_sm,
            "multiprocessor_count": chip.sm_count,
            "warpSize": WARP_SIZE,
            "sm_clock_rate": round(chip.clock_hz / 1e3),
            "mem_clock_rate": round(chip.dram_bytes_per_s / 2 / 1e3),
            "mem_bus_width": 8,
        }


def device_in_force() -> Device:
    """The chip and the target in force here, as Triton's device.

    Raises:
        UnknownName: for a chip that there is not.
        UsageError: for a target that is no GPU's.
    """
    chip, target = active_chip_and_target("gpu")
    assert isinstance(chip, GpuChip)
    return _device(chip, target)


@lru_cache(maxsize=256)
def _device(chip: GpuChip, target: str) -> Device:
    return Device(chip, architecture_of(target))


def architecture_of(target: str) -> int:
    """80 for `sm_80`, 90 for `sm_90` and `sm_90a`.

    Raises:
        UsageError: for anything else.
    """
    architecture = capability_of(target)
    if architecture is None:
        raise UsageError(f"target '{target}' is none that Triton compiles for", hint="expected sm_80, sm_89, sm_90 …")
    return architecture


class Ordinals:
    """Numbers for devices: each pair of chip and target is a device of its own, numbered in order of first use."""

    def __init__(self) -> None:
        """No device yet."""
        self._numbers: dict[tuple[str, int], int] = {}

    def of(self, device: Device) -> int:
        """The device's ordinal."""
        key = device.chip.name, device.architecture
        return self._numbers.setdefault(key, FIRST_ORDINAL + len(self._numbers))


ordinals = Ordinals()
"""One numbering for the process: Triton's caches by ordinal outlive an activation."""


def gpu_only(chip: Chip) -> GpuChip:
    """The chip itself.

    Raises:
        UsageError: for a chip that is no GPU.
    """
    if not isinstance(chip, GpuChip):
        raise UsageError(f"chip '{chip.name}' runs no Triton kernels", hint="choose a GPU (triptych chips lists them)")
    return chip
