"""Instructions of the DMA engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from numpy.typing import NDArray

from triptych.neuron.isa.casts import widen
from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.isa.row import Attributes, Cost, Flow, Subject, Values, optional_tile, output, row, tile, updated
from triptych.neuron.isa.rules import packed_alike, same_dtype
from triptych.neuron.isa.trace import BETA1

_DIRECT = frozenset({Space.HBM, Space.SBUF})
_REACHABLE = frozenset({Space.HBM, Space.SBUF, Space.PSUM})


def _no_psum(subject: Subject) -> None:
    """PSUM is not reachable by DMA since NKI 0.3; before, it could be read."""
    spaces = {name: subject.tensor(name).space for name in ("src", "dst")}
    readable = subject.generation == BETA1
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
    checks=(_no_psum, _same_count, packed_alike),
    moves_bits=True,
)
def dma_copy(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = src, elements in order; dtypes that differ are converted through float32."""
    del attributes
    return {"dst": operands["src"]}


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
    moves_bits=True,
)
def dma_transpose(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = src with its first and last axes exchanged, bit for bit."""
    return {"dst": operands["src"].transpose(cast("tuple[int, ...]", attributes["axes"]))}


SOURCES = 16
"""The most tensors that one DMA adds up. Source: nki.isa.dma_compute."""


def _all_counts(subject: Subject) -> None:
    dst = subject.instruction.region("dst")
    for index in range(SOURCES):
        source = subject.region(f"src{index}")
        if source is not None and source.size != dst.size:
            raise subject.refuse(
                f"requires srcs and dst to have the same number of elements, got srcs[{index}]={source.size}, "
                f"dst={dst.size}"
            )


@row(
    "dma_compute",
    engines=(Engine.DMA,),
    operands=(
        output("dst", _DIRECT),
        tile("src0", _DIRECT),
        *(optional_tile(f"src{index}", _DIRECT) for index in range(1, SOURCES)),
    ),
    cost=Cost.DMA,
    checks=(_all_counts,),
)
def dma_compute(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = the sum of up to 16 tensors, in their order, in float32."""
    del attributes
    total = widen(operands["src0"]).reshape(-1)
    for index in range(1, SOURCES):
        if f"src{index}" in operands:
            total = total + widen(operands[f"src{index}"]).reshape(-1)
    return {"dst": total}


@row(
    "dma_accumulate",
    engines=(Engine.DMA,),
    operands=(updated("dst", _DIRECT), tile("src", _DIRECT)),
    attributes={"atomic": False},
    cost=Cost.DMA,
    source="nki.isa.dma_compute with a vector of offsets; nki.isa.dma_copy with dst_rmw_op; nki.language.atomic_rmw",
    checks=(_same_count,),
)
def dma_accumulate(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = dst + src, in float32; `atomic`: where dst names an element several times, all are added."""
    old, added = widen(operands["dst"]).reshape(-1), widen(operands["src"]).reshape(-1)
    del attributes
    return {"dst": old + added}
