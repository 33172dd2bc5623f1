"""Instructions of the DMA engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from numpy.typing import NDArray

from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.isa.row import Attributes, Cost, Flow, Subject, Values, output, row, tile
from triptych.neuron.isa.rules import same_dtype

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
    operands=(output("dst", _REACHABLE), tile("src", _REACHABLE)),
    cost=Cost.DMA,
    checks=(_no_psum, _same_count),
)
def dma_copy(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = src, elements in order; dtypes that differ are converted through float32."""
    del attributes
    return {"dst": operands["src"].reshape(-1)}


TRANSPOSITIONS = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}
"""The permutation of axes that a DMA does, by the number of axes: the first and the last change places."""


def _permuted(subject: Subject) -> None:
    source, target = subject.instruction.region("src").shape, subject.instruction.region("dst").shape
    axes = subject.instruction.attributes["axes"]
    if axes != TRANSPOSITIONS.get(len(source)):
        known = ", ".join(map(str, TRANSPOSITIONS.values()))
        raise subject.refuse(f"axes {axes} of {subject.describe('src')} of shape {list(source)}; a DMA has {known}")
    expected = [source[axis] for axis in TRANSPOSITIONS[len(source)]]
    if list(target) != expected:
        raise subject.refuse(
            f"{subject.describe('dst')} has the shape {list(target)}; expected {expected}, "
            f"the axes {axes} of {subject.describe('src')}"
        )


@row(
    "dma_transpose",
    engines=(Engine.DMA,),
    operands=(output("dst", _REACHABLE), tile("src", _REACHABLE)),
    attributes={"axes": ()},
    flow=Flow.MOVEMENT,
    cost=Cost.DMA,
    checks=(_no_psum, _permuted, same_dtype("dst", "src")),
)
def dma_transpose(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = src with its first and last axes exchanged, bit for bit."""
    return {"dst": operands["src"].transpose(cast("tuple[int, ...]", attributes["axes"]))}
