"""`nki.isa`: virtual registers, which the engines' sequencers keep."""

from __future__ import annotations

from triptych.languages.nki.isa_functions.function import NkiInstruction
from triptych.languages.nki.tracing.indexing import refuse, whole
from triptych.languages.nki.tracing.registers import VirtualRegister as VirtualRegister  # a name of nisa
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import TileOrNumber, Tracer, current

_WIDTH = 32


def _tracer(function: str) -> Tracer:
    return current(f"nisa.{function}")


def _register(value: object, what: str) -> VirtualRegister:
    if not isinstance(value, VirtualRegister):
        raise refuse(f"{what} is a {type(value).__name__}; expected a register of nisa.register_alloc")
    return value


def _value(value: object, what: str) -> TileOrNumber:
    """A register, or a whole number of 32 bits."""
    if isinstance(value, VirtualRegister):
        return value
    number = whole(value)
    if number is None or not -(1 << (_WIDTH - 1)) <= number < 1 << _WIDTH:
        raise refuse(f"{what} is {value!r}; expected a register or a whole number of 32 bits")
    return number


def _element(value: object, what: str) -> NkiTensor:
    if not isinstance(value, NkiTensor) or value.size != 1:
        shown = list(value.shape) if isinstance(value, NkiTensor) else type(value).__name__
        raise refuse(f"{what} is {shown}; expected a tensor of one element, of shape [1] or [1, 1]")
    return value


def register_alloc(x: int | NkiTensor | None = None) -> VirtualRegister:
    """A new virtual register of 32 bits, with a value, the one integer of a tensor or, for None, without."""
    tracer = _tracer("register_alloc")
    made = tracer.register()
    if isinstance(x, NkiTensor):
        register_load(made, x)
    elif x is not None:
        register_move(made, x)
    return made


def register_move(dst: VirtualRegister, src: object) -> NkiInstruction:
    """Dst = a whole number, or what another register holds."""
    tracer = _tracer("register_move")
    operands = {
        "dst": _register(dst, "nisa.register_move: dst"),
        "src": _value(src, "nisa.register_move: src"),
    }
    return NkiInstruction(tracer.emit("register_move", operands))


def register_load(dst: VirtualRegister, src: NkiTensor) -> NkiInstruction:
    """Dst = the one integer of a tensor in HBM or SBUF."""
    tracer = _tracer("register_load")
    operands = {
        "dst": _register(dst, "nisa.register_load: dst"),
        "src": _element(src, "nisa.register_load: src"),
    }
    return NkiInstruction(tracer.emit("register_load", operands))


def register_store(dst: NkiTensor, src: VirtualRegister) -> NkiInstruction:
    """The one element of a tensor in HBM or SBUF = what a register holds."""
    tracer = _tracer("register_store")
    operands = {
        "dst": _element(dst, "nisa.register_store: dst"),
        "src": _register(src, "nisa.register_store: src"),
    }
    return NkiInstruction(tracer.emit("register_store", operands))
