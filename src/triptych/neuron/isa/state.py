"""What engines keep from instruction to instruction: how many words of it each lane has."""

from __future__ import annotations

from collections.abc import Mapping

from triptych.neuron.isa.hardware import Engine

WORDS = 6
"""32-bit words of the state of one XORWOW generator."""

STATE_SIZES: Mapping[tuple[str, Engine], int] = {
    ("generator", Engine.GPSIMD): WORDS,
    ("generator", Engine.VECTOR): 4 * WORDS,
    ("registers", Engine.VECTOR): 1,
    ("registers", Engine.SCALAR): 1,
}
"""By the operand that stands for it and the engine. Source: nki.isa.rand_set_state and activate2 of NKI 0.6."""
STATE_DTYPES: Mapping[str, str] = {"generator": "u32", "registers": "f32"}
"""The dtypes of the words."""
