"""The page of counters: families of names with their unit and meaning; the tables say which names a family has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from generators.markdown import code, table
from triptych.core.counters import NSIGHT_ALIASES, Provenance
from triptych.gpu.isa import TABLE, Pipe
from triptych.model.traffic import LEVELS
from triptych.neuron.isa import Engine


@dataclass(frozen=True, slots=True)
class Family:
    """Counters of one meaning; `names` are all of them."""

    names: Sequence[str]
    unit: str
    meaning: str


def _flop_types() -> list[str]:
    """The types by which a GPU's FLOPs are counted: packed pairs count as their element, twice."""
    slots = [row.type_slots[0][1] for row in TABLE if row.flops]
    return sorted({kind.removesuffix("x2") for kinds in slots for kind in kinds})


def _spaces(*names: str) -> list[str]:
    return [f"{space}.{kind}" for space in names for kind in ("load", "store", "atomic")]


def _with(prefixes: Sequence[str], last: str) -> list[str]:
    return [f"{prefix}.{last}" for prefix in prefixes]


_ENGINES = [engine.value for engine in Engine]
_LANED = ("vector", "scalar", "gpsimd")
_TENSOR_TYPES = ("f32", "f16", "bf16", "fp8")

GPU: Sequence[Family] = (
    Family(["instructions.warp"], "instructions", "Instructions, once for each warp that executes them."),
    Family(["instructions.thread"], "instructions", "The same by lane, guarded off or not."),
    Family(
        [f"instructions.pipe.{pipe.value}" for pipe in Pipe], "instructions", "Warp-instructions by executing unit."
    ),
    Family(["threads.active_lanes"], "lanes", "Lanes to a warp-instruction, on average."),
    Family(["branches"], "branches", "Executions of `bra` and `brx`, by warp."),
    Family(["branches.divergent"], "branches", "Those at which the lanes of a warp parted."),
    Family(["barriers"], "barriers", "Executions of barriers, by warp."),
    Family(
        [f"flops.{kind}" for kind in _flop_types()],
        "FLOPs",
        "Floating-point operations of the lanes whose guard holds; a row of the table says how many an instruction is.",
    ),
    Family(_with(_spaces("global", "shared", "local"), "requests"), "requests", "Memory instructions, by warp."),
    Family(_with(_spaces("global", "shared", "local"), "bytes"), "bytes", "Bytes that active lanes asked for."),
    Family(_with(_spaces("global"), "sectors"), "sectors", "Distinct sectors of 32 bytes of each request, added up."),
    Family(
        _with(_spaces("shared"), "wavefronts"),
        "wavefronts",
        "Passes over the 32 banks of 4 bytes; a bank gives one word a pass, to all lanes that ask for it.",
    ),
    Family(
        _with(_spaces("shared"), "bank_conflicts"),
        "wavefronts",
        "Wavefronts beyond one a phase; phases are cut as an H200 counts them (`gpu/lower/memory/counts.py`).",
    ),
    Family(
        ["global.load.compulsory_bytes", "global.store.compulsory_bytes"],
        "bytes",
        "64-byte pairs of sectors that the launch read, or wrote, each counted once. Atomics count as writes.",
    ),
)
"""Of a launch on the GPU machine; a line has those of its own instructions."""

NEURON: Sequence[Family] = (
    Family([f"instructions.{engine}" for engine in _ENGINES], "instructions", "Instructions by engine."),
    Family(
        [f"elements.{engine}" for engine in _LANED],
        "elements",
        "Elements through an engine: an instruction's largest operand.",
    ),
    Family(
        [f"flops.{engine}" for engine in _LANED],
        "FLOPs",
        "Operations on elements; of an activation its function, its scale and its bias each count.",
    ),
    Family(
        [f"flops.tensor.{kind}" for kind in _TENSOR_TYPES],
        "FLOPs",
        "Of matrix products, by the stationary operand's type.",
    ),
    Family(["dma.transfers"], "transfers", "DMA instructions."),
    Family(["dma.load.bytes", "dma.store.bytes"], "bytes", "Bytes that DMA read from HBM, and wrote to it."),
    Family(
        ["hbm.load.compulsory_bytes", "hbm.store.compulsory_bytes"],
        "bytes",
        "Bytes of HBM that the launch read, or wrote, each counted once.",
    ),
    Family(
        ["sbuf.peak_bytes", "psum.peak_bytes"],
        "bytes",
        "The most bytes of a partition that tiles take; one lives from the first to the last instruction naming it.",
    ),
)
"""Of a launch on the NeuronCore machine."""

MODEL: Sequence[Family] = (
    Family(["ridge_point"], "FLOP/byte", "The peak of the dominant pipe over the memory's bandwidth."),
    Family(["floor"], "s", "No program that does this work takes less on the chip."),
    Family(["launch_overhead"], "s", "What the launch takes before and after the work."),
    Family(["estimate"], "s", "The launch overhead plus the longest roof."),
    Family(["roof.<name>"], "s", "The time of one limit at its peak: a pipe, a level of memory, an engine."),
    Family(
        [f"bytes.{level.name}" for levels in LEVELS.values() for level in levels],
        "bytes",
        "Bytes at a level of memory.",
    ),
    Family(
        [f"intensity.{level.name}" for levels in LEVELS.values() for level in levels],
        "FLOP/byte",
        "FLOPs over the bytes at that level.",
    ),
)
"""What the model says of a launch: `launch.roofline.counters()`, and `model` in JSON."""

_PROVENANCE: Mapping[Provenance, str] = {
    Provenance.COUNTED_PTX: "counted while PTX ran; `ptxas` may still merge or drop instructions and accesses",
    Provenance.COUNTED_NKI: "counted while an NKI trace ran",
    Provenance.MEASURED: "measured on hardware (nothing in this version is)",
    Provenance.MODELLED: "computed from counts and a chip's figures",
}

_HEAD = """\
# Counters

`launch.counters[name]` is a number that knows its unit and its provenance; `launch.counters.value(name)` is the bare
number, 0 where nothing was counted. Counters that are 0 are left out of a launch, but for a few that are always there.
Counts do not depend on the number of workers, and they are the same in every run.

"""


def page() -> str:
    """The page's Markdown."""
    provenance = table(("provenance", "meaning"), [(code(kind.value), text) for kind, text in _PROVENANCE.items()])
    parts = [_HEAD, provenance]
    for title, families in (("The GPU machine", GPU), ("The NeuronCore machine", NEURON), ("The model", MODEL)):
        rows = [(" ".join(map(code, one.names)), one.unit, one.meaning) for one in families]
        parts.append(f"## {title}\n\n{table(('counters', 'unit', 'meaning'), rows)}")
    parts.append("## Nsight Compute's names\n\n")
    parts.append("Accepted for counts that depend on addresses and masks alone.\n\n")
    parts.append(table(("Nsight Compute", "here"), [(code(a), code(b)) for a, b in NSIGHT_ALIASES.items()]))
    return "".join(parts).rstrip() + "\n"
