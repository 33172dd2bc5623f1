"""`nki.isa`: random numbers."""

from __future__ import annotations

from triptych.languages.nki.isa_functions.enums import engine
from triptych.languages.nki.isa_functions.function import declaration
from triptych.languages.nki.isa_functions.operands import like
from triptych.languages.nki.tracing.tensors import NkiTensor


@declaration()
def rng(dst: NkiTensor, engine: engine = engine.vector) -> None:
    """dst = 32 random bits an element, of which its integer dtype takes the lowest."""


@declaration()
def rand2(dst: NkiTensor, min: float | NkiTensor, max: float | NkiTensor) -> None:
    """dst = float32 numbers that are uniform between min and max; NeuronCore-v4."""


@declaration(like("data"))
def dropout(dst: NkiTensor, data: NkiTensor, prob: float | NkiTensor) -> None:
    """dst = data, of which each element becomes 0 with the probability prob, a number or a tile [P, 1]."""


@declaration()
def set_rng_seed(src_seeds: NkiTensor) -> None:
    """Seeds the Vector engine's generators from one element of 32 bits."""


@declaration()
def rand_set_state(src_seeds: NkiTensor, engine: engine = engine.gpsimd) -> None:
    """The generators of each lane = the words of its partition: 6 on GPSIMD, 24 on the Vector engine (v4)."""


@declaration()
def rand_get_state(dst: NkiTensor, engine: engine = engine.gpsimd) -> None:
    """dst = the words of the generators of each lane: 6 on GPSIMD, 24 on the Vector engine (v4)."""
