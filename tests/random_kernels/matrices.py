"""Multiplications of matrices, and their turning: of bits at random, by all lanes of a warp."""

from __future__ import annotations

from arithmetic import TARGET, draw_opcode, drawable, form_of
from operands import Source
from register_classes import CLASSES

from triptych.gpu.isa import TABLE, Effect, Form
from triptych.gpu.isa.targets import meets

_PRODUCTS = drawable(row for row in TABLE if row.product is not None)
_TURNS = drawable(row for row in TABLE if row.effect is Effect.WARP and row.takes_whole_warp)
_LETTERS = {32: "r", 64: "d"}
"""The class of a register of so many bits."""


def among_matrices(source: Source) -> list[str]:
    """An instruction that takes a whole warp."""
    rows = _TURNS if source.chance(0.2) else _PRODUCTS
    while not _is_there(form_of(opcode := draw_opcode(source.random.choice(rows), source.random))):
        pass
    form = form_of(opcode)
    operands: list[str] = []
    for slot in form.row.operands:
        letter = _LETTERS[form.operand_type(slot).bits]
        if slot.name not in form.fragments:
            operands.append(source.of_class(letter))
            continue
        count = form.fragments[slot.name].registers
        names = [source.of_class(letter) for _ in range(count)]
        if slot.is_destination:
            names = source.random.sample(CLASSES[letter].names, count)
        operands.append(f"{{{', '.join(names)}}}")
    return [f"{opcode} {', '.join(operands)};"]


def _is_there(form: Form) -> bool:
    return form.broken_rule is None and all(meets(TARGET, need) for need in form.needs)
