"""BoundInstructions -> the sums of matrices that live across blocks as tiles (`tensor/staging.py`), not as registers.

A loop that adds products up takes the registers of its sums from one iteration to the next. Where nothing but
multiplications, numbers and arithmetic writes such registers, the converged form keeps the tile instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from triptych.gpu.isa.binding import Bound, BoundInstruction
from triptych.gpu.isa.effects import Carrier, Effect
from triptych.gpu.isa.tensor.fragments import Fragment
from triptych.gpu.isa.types import F32
from triptych.gpu.lower.analysis.find_loose_registers import Nan
from triptych.gpu.lower.tensor.products import has_place
from triptych.gpu.syntax.ast import Register


@dataclass(frozen=True, slots=True)
class TileHome:
    """A matrix of sums, and the registers that hold it."""

    fragment: Fragment
    registers: tuple[str, ...]


def find_tile_homes(
    bound: Sequence[Sequence[BoundInstruction]], across: Set[str], kinds: Mapping[str, Nan]
) -> tuple[TileHome, ...]:
    """Those of a kernel whose registers are all among `across`, those of one kind of matrix side by side.

    `kinds`: which NaN registers may hold. A tile has but the canonical one.
    """
    instructions = [instruction for block in bound for instruction in block]
    products = [i for i in instructions if i.effect is Effect.MULTIPLY]
    written = dict.fromkeys(filter(None, (find_home(i, i.destinations) for i in products)))
    taken = set(filter(None, (find_home(i, i.sources) for i in products)))
    mentions = Counter(name for home in taken | written.keys() for name in home.registers)
    refused = {name for i in instructions if i.effect.carrier is not Carrier.MEANING for name in i.defines}
    fit = [
        home
        for home in written
        if across >= set(home.registers)
        and all(mentions[name] == 1 and name not in refused for name in home.registers)
        and (home.fragment.element is not F32 or all(kinds[name] < Nan.EXACT for name in home.registers))
    ]
    return tuple(sorted(fit, key=lambda home: home.fragment.name))


def find_home(instruction: BoundInstruction, operands: Sequence[Bound]) -> TileHome | None:
    """C or D of a multiplication, the last of its operands: where a tile is as large as its registers."""
    product = instruction.form.product
    if product is None or product.c != product.d or not has_place(product.d):
        return None
    last = [bound.operand for bound in operands[-product.d.registers :]]
    names = tuple(dict.fromkeys(operand.name for operand in last if isinstance(operand, Register)))
    return TileHome(product.d, names) if len(names) == product.d.registers else None
