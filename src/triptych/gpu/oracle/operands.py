"""Operands read as lane values and results written to registers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from triptych.core.errors import UnsupportedFeature
from triptych.gpu.isa.binding import Bound
from triptych.gpu.isa.special_registers import CLOCK_STEP, SPECIALS, Clock, Constant
from triptych.gpu.isa.types import TYPES, U32, U64, ScalarType
from triptych.gpu.oracle.values import LANES, Lanes, Mask, convert, filled, float_literal, resize, unsigned
from triptych.gpu.syntax.ast import Address, FloatBits, Integer, Not, Operand, Register, Sink, Symbol, Vector


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Where a warp stands in its launch: what special registers say."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    block_index: tuple[int, int, int]
    warp: int
    shared_bytes: int
    dynamic_bytes: int
    """Of the shared memory, the bytes that the launch added."""
    block_number: int
    """Blocks are numbered cluster after cluster."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    explicit_cluster: bool = False
    """Whether the launch or the kernel says so."""
    grid_workspace: int = 0
    """The address of what cooperative launches count arrivals in."""

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    def label(self, lane: int) -> str:
        """The block and a lane's thread as CUDA's messages have them."""
        number, (nx, ny, _) = LANES * self.warp + lane, self.block
        thread = (number % nx, number // nx % ny, number // (nx * ny))
        block, own = (",".join(map(str, index)) for index in (self.block_index, thread))
        return f"block: [{block}], thread: [{own}]"

    def of_launch(self, name: str) -> Lanes:
        """A special register that the launch, or the thread's place in it, gives: u32, and a predicate."""
        base, _, axis = name.partition(".")
        if base == "%is_explicit_cluster":
            return np.full(LANES, self.explicit_cluster)
        vectors = {
            "%ntid": self.block, "%ctaid": self.block_index, "%nctaid": self.grid, "%cluster_nctaid": self.cluster,
            "%clusterid": [at // part for at, part in zip(self.block_index, self.cluster, strict=True)],
            "%nclusterid": [extent // part for extent, part in zip(self.grid, self.cluster, strict=True)],
            "%cluster_ctaid": [at % part for at, part in zip(self.block_index, self.cluster, strict=True)],
        }  # fmt: skip
        if base in vectors:
            return filled(U32, vectors[base]["xyz".index(axis)])
        thread = np.arange(LANES) + LANES * self.warp
        x, y, _ = self.block
        lanes = {
            "%tid.x": thread % x, "%tid.y": thread // x % y, "%tid.z": thread // (x * y), "%laneid": np.arange(LANES),
            "%warpid": np.full(LANES, self.warp), "%envreg1": np.full(LANES, self.grid_workspace >> 32),
            "%envreg2": np.full(LANES, self.grid_workspace & 0xFFFF_FFFF),
            "%cluster_nctarank": np.full(LANES, math.prod(self.cluster)),
            "%cluster_ctarank": np.full(LANES, self.block_number % math.prod(self.cluster)),
            "%nwarpid": np.full(LANES, -(-self.threads // LANES)),
            "%total_smem_size": np.full(LANES, self.shared_bytes),
            "%dynamic_smem_size": np.full(LANES, self.dynamic_bytes),
        }  # fmt: skip
        if name in _LANE_MASKS:
            return np.array([_LANE_MASKS[name](lane) for lane in range(LANES)], np.uint32)
        return lanes[name].astype(np.uint32)


_LANE_MASKS: Mapping[str, Callable[[int], int]] = {
    "%lanemask_eq": lambda lane: sum(1 << i for i in range(LANES) if i == lane),
    "%lanemask_lt": lambda lane: sum(1 << i for i in range(LANES) if i < lane),
    "%lanemask_le": lambda lane: sum(1 << i for i in range(LANES) if i <= lane),
    "%lanemask_gt": lambda lane: sum(1 << i for i in range(LANES) if i > lane),
    "%lanemask_ge": lambda lane: sum(1 << i for i in range(LANES) if i >= lane),
}


@dataclass(slots=True)
class Registers:
    """One warp's registers; what was never written reads as 0."""

    declared: Mapping[str, str]
    addresses: Mapping[str, int]
    """Of the variables that an operand may name."""
    coordinates: Coordinates
    values: dict[str, Lanes] = field(default_factory=dict[str, Lanes])
    clock: int = 0
    """What clock registers last said."""

    def type_of(self, name: str) -> ScalarType:
        """A register's type."""
        kind = self.declared[name]
        if kind not in TYPES:
            raise UnsupportedFeature(f"register {name} has type .{kind}, which is not supported")
        return TYPES[kind]

    def get(self, name: str) -> Lanes:
        """A declared register's value."""
        if name not in self.values:
            self.values[name] = filled(self.type_of(name), 0)
        return self.values[name]

    # Reading ----------------------------------------------------------------------------------------------------

    def read(self, bound: Bound) -> Lanes:
        """An operand as a value of its type; addresses are u64."""
        return self._address(bound.operand) if bound.is_address else self._read(bound.operand, bound.type)

    def _read(self, operand: Operand, t: ScalarType) -> Lanes:
        match operand:
            case Register(name) if name in self.declared:
                return convert(self.get(name), self.type_of(name), t)
            case Register(name):
                return convert(self._special(name), SPECIALS[name].type, t)
            case Not(inner):
                return ~self._read(inner, t)
            case Integer(value) if t.name in ("f32", "f64"):
                return np.full(LANES, value, np.float64).astype(f"f{t.bytes}")
            case Integer(value):
                return filled(t, value)
            case FloatBits(bits, width):
                return float_literal(bits, width, t)
            case Symbol(name, offset):
                return convert(filled(U64, self._variable(name) + offset), U64, t)
            case Vector(elements):
                return self._pack(elements, t)
            case _:
                raise UnsupportedFeature(f"operand {operand} is not supported")

    def _special(self, name: str) -> Lanes:
        if name not in SPECIALS:
            raise UnsupportedFeature(f"special register {name} is not supported")
        special = SPECIALS[name]
        match special.source:
            case Constant(value):
                return filled(special.type, value)
            case Clock(first_bit):
                self.clock += CLOCK_STEP
                return filled(special.type, self.clock >> first_bit)
            case _:
                return self.coordinates.of_launch(name)

    def _variable(self, name: str) -> int:
        if name not in self.addresses:
            raise UnsupportedFeature(f"symbol '{name}' is not supported")
        return self.addresses[name]

    def _pack(self, elements: tuple[Operand, ...], t: ScalarType) -> Lanes:
        part = TYPES[f"b{t.bits // len(elements)}"]
        parts = np.stack([self._read(element, part) for element in elements], axis=1)
        return np.ascontiguousarray(parts).view(unsigned(t.bits)).reshape(LANES)

    def _address(self, operand: Operand) -> Lanes:
        if not isinstance(operand, Address):
            raise UnsupportedFeature(f"address operand {operand} is not supported")
        match operand.base:
            case Register(name):
                t = self.type_of(name)
                moved = self.get(name).view(unsigned(t.bits)) + filled(TYPES[f"u{t.bits}"], operand.offset)
                return resize(moved, TYPES[f"u{t.bits}"], 64)
            case Symbol(name, offset):
                return filled(U64, self._variable(name) + offset + operand.offset)
            case Integer(place):
                return filled(U64, place + operand.offset)

    # Writing ----------------------------------------------------------------------------------------------------

    def write(self, bound: Bound, value: Lanes, active: Mask) -> None:
        """A result into its destination, in the active lanes."""
        match bound.operand:
            case Register(name):
                new = convert(value, bound.type, self.type_of(name))
                self.values[name] = np.where(active, new, self.get(name))
            case Vector(elements):
                part = TYPES[f"u{bound.type.bits // len(elements)}"]
                parts = np.ascontiguousarray(value).view(unsigned(part.bits)).reshape(LANES, len(elements))
                for position, element in enumerate(elements):
                    self.write(Bound(element, part), parts[:, position].copy(), active)
            case Sink():
                return
            case _:
                raise UnsupportedFeature(f"destination {bound.operand} is not supported")
