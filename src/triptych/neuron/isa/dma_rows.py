"""Instructions of the DMA engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.isa.row import Attributes, Cost, Flow, OperandRule, Subject, Values, row

_REACHABLE = frozenset({Space.HBM, Space.SBUF, Space.PSUM})


def _no_psum(subject: Subject) -> None:
    """PSUM is not reachable by DMA since NKI 0.3; before, it could be read."""
    spaces = {name: subject.tensor(name).space for name in ("src", "dst")}
    readable = subject.generation == "beta1"
    if spaces["dst"] is Space.PSUM or (spaces["src"] is Space.PSUM and not readable):
        raise subject.refuse(
            f"requires HBM or SBUF tensors, got src={spaces['src'].value}, dst={spaces['dst'].value}",
            "copy a PSUM tile to SBUF first: nisa.tensor_copy or nl.copy",
        )


def _same_count(subject: Subject) -> None:
    source, target = subject.instruction.region("src"), subject.instruction.region("dst")
    if source.size != target.size:
        raise subject.refuse(
            f"requires src and dst to have the same number of elements, got src={source.size}, dst={target.size} "
            f"({subject.describe('src')} has the shape {list(source.shape)}, "
            f"{subject.describe('dst')} the shape {list(target.shape)})"
        )


@row(
    "dma_copy",
    engines=(Engine.DMA,),
    operands=(
        OperandRule("dst", _REACHABLE, written=True, read=False),
        OperandRule("src", _REACHABLE),
    ),
    flow=Flow.ELEMENTWISE,
    cost=Cost.DMA,
    checks=(_no_psum, _same_count),
    source="nki.isa.dma_copy",
)
def dma_copy(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = src, elements in order; dtypes that differ are converted through float32."""
    del attributes
    return {"dst": operands["src"].reshape(-1)}
