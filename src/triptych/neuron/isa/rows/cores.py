"""What the cores of a logical NeuronCore, or the programs of a grid, do together: they meet, and exchange tiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.arithmetic import reduce_in_order
from triptych.neuron.isa.casts import widen
from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.isa.row import SBUF, Attributes, Cost, Effect, Flow, Subject, Values, named, output, row, tile
from triptych.neuron.isa.rules import one_of, same_dtype, same_shape

_ENGINES = (Engine.GPSIMD, Engine.VECTOR, Engine.SCALAR, Engine.TENSOR, Engine.SYNC)
_GPSIMD_BYTES: Mapping[int, int] = {4: 1024, 2: 512, 1: 256}
"""The most bytes of a partition that GPSIMD's own DMA sends, by the bytes of an element. Source: nki.isa.sendrecv."""


def _two_cores(subject: Subject) -> None:
    """The grid is that of a logical NeuronCore of two cores."""
    grid = subject.surroundings.grid
    if len(grid) != 1 or grid[0] < 2:
        raise subject.refuse(f"requires LNC degree >= 2; the grid is {list(grid)}", "launch with kernel[2](…)")


def _shared(subject: Subject) -> None:
    """Both cores take part, and see what they wait for. Kernels of AWS's library name arguments and tiles too."""
    if subject.instruction.attributes["cores"] != (0, 1):
        raise subject.refuse(f"cores={subject.instruction.attributes['cores']}; only (0, 1) can meet")
    if not subject.tensor("data").space.on_chip and not subject.seen_by_all("data"):
        raise subject.refuse(
            f"{subject.describe('data')} is no tensor of nl.shared_hbm, which is what cores share",
            "declare it with buffer=nl.shared_hbm",
        )


@row(
    "core_barrier",
    engines=_ENGINES,
    operands=(named("data", frozenset({Space.HBM, Space.SBUF})),),
    attributes={"cores": ()},
    cost=Cost.CONTROL,
    core_generation=3,
    checks=(_two_cores, _shared),
    effect=Effect.MEET,
)
def core_barrier(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """No core goes on before both are here: what each stored before is seen by the other."""
    del operands, attributes
    return {}


def _ranks(subject: Subject) -> None:
    for name in ("send_to_rank", "recv_from_rank"):
        if subject.instruction.attributes[name] not in (0, 1):
            raise subject.refuse(f"{name} is {subject.instruction.attributes[name]}; the cores are 0 and 1")


def _within_gpsimd(subject: Subject) -> None:
    """GPSIMD's own DMA sends few bytes of each partition."""
    if subject.instruction.engine is not Engine.GPSIMD:
        return
    dtype = subject.tensor("src").dtype
    taken, most = subject.instruction.region("src").free * dtype.bytes, _GPSIMD_BYTES[dtype.bytes]
    if taken > most:
        raise subject.exceed(
            f"{subject.describe('src')} has {taken} bytes in each partition; gpsimd_dma sends at most {most} of "
            f"{8 * dtype.bytes}-bit elements",
            "use dma_engine=nisa.dma_engine.dma, or send parts",
        )


@row(
    "sendrecv",
    engines=(Engine.DMA, Engine.GPSIMD),
    operands=(output("dst", SBUF), tile("src", SBUF)),
    attributes={"send_to_rank": 0, "recv_from_rank": 0, "pipe_id": 0},
    flow=Flow.MOVEMENT,
    cost=Cost.DMA,
    core_generation=3,
    checks=(_two_cores, same_shape("dst", "src"), same_dtype("dst", "src"), _ranks, _within_gpsimd),
    effect=Effect.MEET,
    moves_bits=True,
)
def sendrecv(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = the src of the core recv_from_rank, while this core's src goes to send_to_rank."""
    return {"dst": operands.others[cast("int", attributes["recv_from_rank"])].flat("src")}


@row(
    "reduce_programs",
    engines=(Engine.DMA,),
    operands=(output("dst", SBUF), tile("src", SBUF)),
    attributes={"op": None, "group": ()},
    cost=Cost.UNPUBLISHED,
    source="nki.language.all_reduce (Beta 1)",
    checks=(same_shape("dst", "src"), one_of("op", ("add", "multiply", "maximum", "minimum"))),
    effect=Effect.MEET,
)
def reduce_programs(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = the src of all programs of the group, reduced in ascending order in float32."""
    tiles = np.stack([widen(one.flat("src")) for one in operands.others], axis=-1)
    return {"dst": reduce_in_order(str(attributes["op"]), tiles)}
