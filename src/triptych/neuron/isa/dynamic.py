"""Regions whose place depends on indices that are known only when the trace runs: what verification can say of them."""

from __future__ import annotations

from dataclasses import replace

from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.isa.row import OperandRule, Subject
from triptych.neuron.isa.trace import Dynamic, Indexing, Region

INDEX_DTYPES = ("s32", "u32")
_QUADRANT = 32
_GROUPS = {Engine.TENSOR: 32}
_GROUP = 16


def group_size(engine: Engine) -> int:
    """The partitions that share indices into the free dimension. Source: NkiTensor.indirect of NKI 0.6."""
    return _GROUPS.get(engine, _GROUP)


def statically(region: Region) -> Region:
    """The region at index 0, as far as its bounds are known: along an axis with an index for each place one place."""
    if region.dynamic is None:
        return region
    pattern = region.pattern
    if region.dynamic.kind is Indexing.ROWS:
        pattern = ((0, pattern[0][1]), *pattern[1:])
    return replace(region, pattern=pattern, dynamic=None)


def check_dynamic(subject: Subject, rule: OperandRule, region: Region, dynamic: Dynamic) -> None:
    """The indices are there, of a dtype that indices may have, and the engine can follow them.

    Raises:
        NkiError: naming what is wrong.
    """
    name, index = subject.describe(rule.name), dynamic.index
    if not 0 <= index.tensor < len(subject.tensors) or dynamic.extent < 1:
        raise subject.refuse(f"{name} is indexed by no tensor, or along nothing")
    tensor, space = subject.tensors[index.tensor], subject.tensors[region.tensor].space
    low, high = index.bounds
    if tensor.dtype.name not in INDEX_DTYPES and not (dynamic.kind is Indexing.COLUMNS and tensor.dtype.name == "u16"):
        raise subject.refuse(f"{name} is indexed by `{tensor.name}` of {tensor.dtype.label}; expected int32 or uint32")
    if low < 0 or high >= tensor.size or tensor.space is Space.PSUM:
        raise subject.refuse(f"{name} is indexed by `{tensor.name}`, which is in PSUM or has not so many elements")
    _CHECKS[dynamic.kind](subject, name, region, dynamic, space)


def _scalar(subject: Subject, name: str, region: Region, dynamic: Dynamic, space: Space) -> None:
    del region
    if dynamic.index.size != 1:
        raise subject.refuse(f"{name} is moved by {dynamic.index.size} offsets; a scalar offset is one")
    tensor = subject.tensors[dynamic.index.tensor]
    if tensor.space is Space.HBM:
        raise subject.refuse(f"{name} is moved by `{tensor.name}` in HBM", "load it: nisa.register_load, or nl.load")
    del space


def _rows(subject: Subject, name: str, region: Region, dynamic: Dynamic, space: Space) -> None:
    if space is not Space.HBM or subject.instruction.engine is not Engine.DMA:
        raise subject.refuse(
            f"{name} has a vector of offsets; only a DMA follows one, into HBM", "nisa.nc_n_gather gathers in SBUF"
        )
    if dynamic.index.size != region.partitions:
        raise subject.refuse(f"{name} has {region.partitions} rows and {dynamic.index.size} offsets")


def _columns(subject: Subject, name: str, region: Region, dynamic: Dynamic, space: Space) -> None:
    if subject.hardware.core_generation < 4:
        raise subject.refuse(
            f"{name} is indirect (.indirect), which needs NeuronCore-v4 (gen4) or later; {subject.hardware.target} has "
            f"NeuronCore-v{subject.hardware.core_generation}"
        )
    if subject.instruction.engine is Engine.DMA or not space.on_chip:
        raise subject.refuse(f"{name} is indirect (.indirect), which is for tiles of engines alone")
    tensor = subject.tensors[dynamic.index.tensor]
    if tensor.space is not Space.SBUF or dynamic.index.offset // tensor.free % _QUADRANT:
        raise subject.refuse(f"{name}: its index `{tensor.name}` must start on a quadrant of SBUF, a multiple of 32")
    rows = region.partitions
    if dynamic.index.partitions != rows:
        raise subject.refuse(f"{name} has {rows} partitions, its index `{tensor.name}` {dynamic.index.partitions}")
    if region.free > dynamic.index.free * group_size(subject.instruction.engine):
        raise subject.refuse(f"{name} wants {region.free} offsets of a group; `{tensor.name}` has fewer")


_CHECKS = {Indexing.SCALAR: _scalar, Indexing.ROWS: _rows, Indexing.COLUMNS: _columns}
