"""The page of the timeline's costs: what engines and transfers take, by generation, with sources."""

from __future__ import annotations

from generators.markdown import code, table
from triptych.chips import NeuronChip, load, targets
from triptych.neuron.isa.hardware import Engine
from triptych.neuron.timeline.costs import ALL_ENGINES, ALL_GENERATIONS, RATES, Rate
from triptych.neuron.timeline.generations import GENERATIONS, generation_of

_HEAD = """\
# Costs of the timeline

What [the timeline](../timeline.md) of a kernel on a NeuronCore is made of. The first row that fits an instruction is
its; the classes are those of the [engine table](nki.md). Costs are cycles of the executing engine, where no unit is
given; N is the most elements of a partition that an operand has, M the columns of the stationary operand, P the
partitions.

"""


def page() -> str:
    """The page's Markdown."""
    headings = ("class", "instructions", "engine", "NeuronCore", "where", "cost", "source")
    parts = [_HEAD, table(headings, map(_cells, RATES)), "## Generations\n\n"]
    chips = [chip for name in targets("neuron") if isinstance(chip := load(name), NeuronChip)]
    rows = [_generation(chip) for chip in chips]
    parts.append(table(("chip", "share a port of SBUF", "a DMA engine moves", "set-up", "source"), rows))
    return "".join(parts).rstrip() + "\n"


def _cells(row: Rate) -> tuple[str, ...]:
    return (
        row.cost.name.lower().replace("_", " "),
        " ".join(map(code, sorted(row.names))),
        "" if row.engines == ALL_ENGINES else ", ".join(engine.value for engine in Engine if engine in row.engines),
        "" if row.generations == ALL_GENERATIONS else ", ".join(f"v{one}" for one in row.generations),
        row.when.text,
        row.formula.text,
        row.source,
    )


def _generation(chip: NeuronChip) -> tuple[str, ...]:
    facts = GENERATIONS[generation_of(chip)]
    moved = chip.dma_engine_bytes_per_s * facts.dma_reached
    ports = ", ".join(engine.value for engine in Engine if engine in facts.shares_port)
    return code(chip.name), ports, f"{moved / 1e9:.0f} GB/s", f"{1e9 * chip.dma_latency_s:.0f} ns", facts.source
