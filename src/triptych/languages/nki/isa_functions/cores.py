"""`nki.isa`: what the two cores of a logical NeuronCore (LNC 2) do together."""

from __future__ import annotations

from collections.abc import Sequence

from triptych.languages.nki.isa_functions.enums import chosen_engine, dma_engine, engine
from triptych.languages.nki.isa_functions.function import instruction
from triptych.languages.nki.isa_functions.operands import tensor_of
from triptych.languages.nki.tracing.indexing import refuse, whole, whole_numbers
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import current
from triptych.neuron.isa import Engine


def _rank(value: object, name: str) -> int:
    rank = whole(value)
    if rank is None:
        raise refuse(f"nisa.sendrecv: {name}={value!r} is no whole number")
    return rank


@instruction()
def core_barrier(data: NkiTensor, cores: Sequence[int], engine: engine = engine.gpsimd) -> int | None:
    """Neither core goes on before both are here; `data` in nl.shared_hbm is what they wait for; `cores` is (0, 1).

    Kernels of AWS's library name arguments and tiles too.
    """
    operands = {"data": tensor_of(data, "nisa.core_barrier: data")}
    attributes = {"cores": whole_numbers(cores, "nisa.core_barrier: cores")}
    return current("nisa.core_barrier").emit("core_barrier", operands, attributes, engine=chosen_engine(engine))


@instruction()
def sendrecv(
    src: NkiTensor,
    dst: NkiTensor,
    send_to_rank: int,
    recv_from_rank: int,
    pipe_id: int,
    dma_engine: dma_engine = dma_engine.dma,
) -> int | None:
    """dst = the src of the core `recv_from_rank`, while this core's src goes to `send_to_rank`; both in SBUF."""
    operands = {"dst": tensor_of(dst, "nisa.sendrecv: dst"), "src": tensor_of(src, "nisa.sendrecv: src")}
    attributes = {
        "send_to_rank": _rank(send_to_rank, "send_to_rank"),
        "recv_from_rank": _rank(recv_from_rank, "recv_from_rank"),
        "pipe_id": _rank(pipe_id, "pipe_id"),
    }
    chosen = Engine.GPSIMD if dma_engine.name == "gpsimd_dma" else Engine.DMA
    return current("nisa.sendrecv").emit("sendrecv", operands, attributes, engine=chosen)
