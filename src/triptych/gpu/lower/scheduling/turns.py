"""How the blocks that a worker holds take turns: what of its context is the block's goes to its slot and comes back."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.lower.primitives.emitter import I64, POINTER, Emitter, constant
from triptych.gpu.lower.records import Context, Slot

START_BLOCK = "triptych.start_block"


def move_on(e: Emitter, context: ir.Value, following: ir.Value, *, last: ir.Value, back: ir.Value) -> ir.Value:
    """The slot's block steps aside for that of slot `following`, or of `back` from `last` on, which it gives."""
    _swap(e, context, load=False)
    wraps = e.b.icmp_signed(">=", following, last)
    e.b.store(e.b.select(wraps, back, following), e.field(Context, context, "cursor"))
    _swap(e, context, load=True)
    return wraps


def _swap(e: Emitter, context: ir.Value, *, load: bool) -> None:
    """What of the context is the block's, to or from the slot at the cursor."""
    slots = e.b.inttoptr(e.load_field(Context, context, "slots"), POINTER)
    slot = e.offset(slots, e.b.mul(e.load_field(Context, context, "cursor"), constant(Slot.size())))
    for name in Slot.names():
        there, here = e.field(Slot, slot, name), e.field(Context, context, name)
        source, target = (there, here) if load else (here, there)
        e.b.store(e.b.load(source, typ=I64), target)
