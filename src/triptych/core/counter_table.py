"""The counter table: a row for each counter, or family of counters, with all that is known of it.

The machines take units and provenance from it, `Counters` the names and Nsight Compute's aliases, reports and the model
the names that they read, and the reference its page of counters. What counts is not here: `gpu/run/counting_plan.py`
and its twin `gpu/oracle/counting.py`, `neuron/run/tally.py`, `model/roofline.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import product


class Provenance(Enum):
    """Where a number comes from. A modelled number never carries a measured counter's name."""

    COUNTED_PTX = "counted on PTX"
    COUNTED_NKI = "counted on NKI"
    MEASURED = "measured"
    MODELLED = "modelled"


PROVENANCES: Mapping[Provenance, str] = {
    Provenance.COUNTED_PTX: "counted while PTX ran; ptxas may still merge or drop instructions and accesses",
    Provenance.COUNTED_NKI: "counted while an NKI trace ran",
    Provenance.MEASURED: "measured on hardware (nothing in this version is)",
    Provenance.MODELLED: "computed from counts and a chip's figures",
}
"""What each provenance says."""


@dataclass(frozen=True, slots=True)
class CounterRow:
    """A counter, or a family of counters of one unit and meaning."""

    machine: str
    """Who gives it: `gpu`, `neuron`, or `model` for the numbers that are computed of a launch on either."""
    provenance: Provenance
    pattern: str
    """The name; `<word>` in it stands for each of `values["word"]`, or for what the model names where none is given."""
    unit: str
    meaning: str
    values: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    nsight: Mapping[str, str] = field(default_factory=dict[str, str])
    """Nsight Compute's name by ours, only where it counts exactly the same: by addresses and masks alone."""
    always: bool = False
    """Whether every launch has it; the others are left out where they are 0."""
    beside: str = ""
    """The pattern of a counter that brings it along, even as 0; the same placeholders."""
    adds: bool = True
    """Whether lines' values add up; not those of a ratio or a maximum."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the family, in the order of its values."""
        return self._expand(self.pattern)

    def named(self, name: str) -> str:
        """The name in which `name` stands for the placeholder that has no values."""
        head, _, rest = self.pattern.partition("<")
        return f"{head}{name}{rest.partition('>')[2]}"

    @property
    def companions(self) -> Mapping[str, str]:
        """The family's names by those that bring them along."""
        return dict(zip(self._expand(self.beside), self.names, strict=True)) if self.beside else {}

    def _expand(self, pattern: str) -> tuple[str, ...]:
        names: list[str] = []
        for chosen in product(*self.values.values()):
            name = pattern
            for word, value in zip(self.values, chosen, strict=True):
                name = name.replace(f"<{word}>", value)
            names.append(name)
        return tuple(names)


_gpu = partial(CounterRow, "gpu", Provenance.COUNTED_PTX)
_neuron = partial(CounterRow, "neuron", Provenance.COUNTED_NKI)
_model = partial(CounterRow, "model", Provenance.MODELLED)

_PIPES = ("int", "fp32", "fp64", "fp16", "tensor", "special", "convert", "move", "load_store", "warp", "control")
_KINDS = ("load", "store", "atomic")
_SPACES = ("global", "shared", "shared.cluster", "shared.async", "shared.tensor", "local")
_ENGINES = ("tensor", "vector", "scalar", "gpsimd", "dma", "sync")
_ELEMENT_ENGINES = ("vector", "scalar", "gpsimd")

_GPU: Sequence[CounterRow] = (
    _gpu("instructions.warp", "instructions", "Instructions, once for each warp that executes them.", always=True),
    _gpu("instructions.thread", "instructions", "The same by lane, guarded off or not.", always=True),
    _gpu("instructions.pipe.<pipe>", "instructions", "Warp-instructions by executing unit.", {"pipe": _PIPES}),
    _gpu(
        "waiting.instructions", "instructions",
        "Warp-instructions of loops that only look at mbarriers. How often they do depends on when the warps run that"
        " are waited for, which a GPU decides in another way: the model leaves them out.",
    ),
    _gpu("waiting.wavefronts", "wavefronts", "Those of shared memory that these take; left out likewise."),
    _gpu("threads.active_lanes", "lanes", "Lanes to a warp-instruction, on average.", adds=False),
    _gpu("branches", "branches", "Executions of `bra` and `brx`, by warp.", always=True),
    _gpu("branches.divergent", "branches", "Those at which the lanes of a warp parted.", always=True),
    _gpu(
        "tma.<kind>.boxes", "boxes",
        "Boxes of tensors that TMA copied (`cp.async.bulk.tensor`), or reduced into; one that goes to several blocks is"
        " as many. A box is a request of `shared.async` too, and one of `global` for what lies inside of the tensor: a"
        " sector in which one of its rows ends is not counted again where the next one begins in it.",
        {"kind": _KINDS},
    ),
    _gpu(
        "tma.<kind>.bytes", "bytes", "Their bytes in shared memory, those outside of the tensor among them.",
        {"kind": _KINDS},
    ),
    _gpu("barriers", "barriers", "Executions of barriers, by warp."),
    _gpu(
        "flops.<dtype>", "FLOPs",
        "Floating-point operations of the lanes whose guard holds, as the PTX carries them out: an `fma` is two,"
        " whatever the author wrote. Where a target lacks an instruction (bf16 `add` and `mul` before sm_90) the"
        " compiler writes others, such as `fma` with 1 or 0, and the same source has more.",
        {"dtype": ("bf16", "f16", "f32", "f64")},
    ),
    _gpu(
        "flops.tensor.<dtype>", "FLOPs",
        "Of multiplications of matrices by the tensor cores, 2·m·n·k each, by the type of A (`fp8`: e4m3 and e5m2).",
        {"dtype": ("bf16", "f16", "tf32", "fp8", "f64")},
    ),
    _gpu(
        "flops.tensor.<dtype>", "operations", "The same of integers, signed or not, and of single bits.",
        {"dtype": ("s8", "s4", "b1")},
    ),
    _gpu(
        "<space>.<kind>.requests", "requests",
        "Memory instructions, by warp. `shared.cluster` are those at `shared::cluster` addresses and at generic ones"
        " that name a block of the cluster, be it the thread's own; `shared` has none of them. `shared.async` is"
        " what asynchronous copies (`cp.async.bulk`, `st.async` …) do in shared memory, each lane's as one; so are"
        " theirs in `global`, which Nsight Compute does not count under the names given here. `shared.tensor` are"
        " the matrices that tensor cores read there (`wgmma`): each warp its"
        " part of A, and a quarter of B, which the four warps of a group share.",
        {"space": _SPACES, "kind": _KINDS},
        nsight={
            "global.load.requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
            "global.store.requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
        },
    ),
    _gpu(
        "<space>.<kind>.bytes", "bytes", "Bytes that active lanes asked for.", {"space": _SPACES, "kind": _KINDS},
    ),
    _gpu(
        "global.<kind>.sectors", "sectors", "Distinct sectors of 32 bytes of each request, added up.", {"kind": _KINDS},
        nsight={
            "global.load.sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
            "global.store.sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
        },
    ),
    _gpu(
        "shared.<kind>.wavefronts", "wavefronts",
        "Passes over the 32 banks of 4 bytes; a bank gives one word a pass, to all lanes that ask for it.",
        {"kind": _KINDS},
        nsight={
            "shared.load.wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
            "shared.store.wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
        },
    ),
    _gpu(
        "shared.<kind>.bank_conflicts", "wavefronts",
        "Wavefronts beyond one a phase; phases are cut as an H200 counts them (`gpu/lower/memory/counts.py`).",
        {"kind": _KINDS},
        nsight={
            "shared.load.bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
            "shared.store.bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
        },
        beside="shared.<kind>.wavefronts",
    ),
    _gpu(
        "global.<kind>.compulsory_bytes", "bytes",
        "64-byte pairs of sectors that the launch read, or wrote, each counted once. Atomics count as writes.",
        {"kind": ("load", "store")}, always=True,
    ),
)  # fmt: skip

_NEURON: Sequence[CounterRow] = (
    _neuron("instructions.<engine>", "instructions", "Instructions by engine.", {"engine": _ENGINES}),
    _neuron(
        "elements.<engine>", "elements", "Elements through an engine: an instruction's largest operand.",
        {"engine": _ELEMENT_ENGINES},
    ),
    _neuron(
        "flops.<engine>", "FLOPs",
        "Operations on elements; of an activation its function, its scale and its bias each count.",
        {"engine": _ELEMENT_ENGINES},
    ),
    _neuron(
        "flops.tensor.<dtype>", "FLOPs",
        "Of matrix products, by the stationary operand's type; those of tf32 count as bf16's, whose rate they have.",
        {"dtype": ("f32", "f16", "bf16", "fp8")},
    ),
    _neuron("dma.transfers", "transfers", "DMA instructions."),
    _neuron(
        "dma.<kind>.bytes", "bytes", "Bytes that DMA read from HBM, and wrote to it.", {"kind": ("load", "store")},
    ),
    _neuron(
        "hbm.<kind>.compulsory_bytes", "bytes", "Bytes of HBM that the launch read, or wrote, each counted once.",
        {"kind": ("load", "store")}, always=True,
    ),
    _neuron(
        "<space>.peak_bytes", "bytes",
        "The most bytes of a partition that tiles take; one lives from the first to the last instruction naming it.",
        {"space": ("sbuf", "psum")}, always=True, adds=False,
    ),
)  # fmt: skip

_MODEL: Sequence[CounterRow] = (
    _model("ridge_point", "FLOP/byte", "The peak of the dominant pipe over the memory's bandwidth."),
    _model("floor", "s", "No program that does this work takes less on the chip."),
    _model("launch_overhead", "s", "What the launch takes before and after the work."),
    _model("estimate", "s", "The launch overhead plus the longest roof; on a NeuronCore the length of its timeline."),
    _model(
        "roof.<name>",
        "s",
        "The time of one limit at its peak: a pipe, a level of memory; of a NeuronCore's engine its time at work.",
    ),
    _model(
        "overlap",
        "fraction",
        "Of the time in which a NeuronCore moves data the part in which an engine works beside it.",
    ),
    _model("bytes.<level>", "bytes", "Bytes at a level of memory."),
    _model(
        "intensity.<level>",
        "FLOP/byte",
        "FLOPs over the bytes at that level; left out where there are FLOPs and no bytes.",
    ),
)

COUNTER_ROWS: Sequence[CounterRow] = (*_GPU, *_NEURON, *_MODEL)
"""The table."""

COUNTER_ROW: Mapping[str, Mapping[str, CounterRow]] = {
    machine: {name: row for row in COUNTER_ROWS if row.machine == machine for name in row.names}
    for machine in ("gpu", "neuron", "model")
}
"""The row of a name, by machine; of the model, by pattern."""

COUNTED: frozenset[str] = frozenset(COUNTER_ROW["gpu"]) | frozenset(COUNTER_ROW["neuron"])
"""The names of all counters of all machines."""

ALWAYS: Mapping[str, tuple[str, ...]] = {
    machine: tuple(name for name, row in rows.items() if row.always) for machine, rows in COUNTER_ROW.items()
}
"""By machine: the counters that every launch has."""

COMPANIONS: Mapping[str, str] = {name: other for row in COUNTER_ROWS for name, other in row.companions.items()}
"""Where the counter on the left was counted, the one on the right is there, even as 0."""

NSIGHT_ALIASES: Mapping[str, str] = {alias: name for row in COUNTER_ROWS for name, alias in row.nsight.items()}
"""Our names by Nsight Compute's."""
