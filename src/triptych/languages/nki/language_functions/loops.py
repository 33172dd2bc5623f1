"""`nki.language`: loops. Those over whole numbers are unrolled; `fori_loop` and `while_loop` run on the device."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import cast

from triptych.languages.nki.language_functions.elementwise import binary, on_chip, result_tile
from triptych.languages.nki.tracing.declarations import call_path
from triptych.languages.nki.tracing.indexing import LoopIndex, refuse, sequence, whole
from triptych.languages.nki.tracing.loops import Unrolled
from triptych.languages.nki.tracing.operations import alu_name
from triptych.languages.nki.tracing.registers import VirtualRegister
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import TileOrNumber, Tracer, active, current
from triptych.neuron.isa.trace import BETA1


def _range(start: int, stop: int | None = None, step: int = 1) -> range:
    for bound in (start, stop, step):
        if isinstance(bound, VirtualRegister):
            raise refuse("the bound of an unrolled loop is a register", "loop on the device: nl.fori_loop")
        if bound is not None and whole(bound) is None:
            raise refuse(f"a loop bound {bound!r} is no whole number")
    if step == 0:
        raise refuse("the step of a loop is 0")
    return range(start) if stop is None else range(start, stop, step)


def _unrolled(bounds: range, *, independent: bool) -> range:
    """The indices; under Beta 1 they know their loop."""
    tracer = active()
    if tracer is None or tracer.generation != BETA1:
        return bounds
    return cast("range", Unrolled(tracer, bounds, independent))


def affine_range(start: int, stop: int | None = None, step: int = 1, *, directives: object = None) -> range:
    """A loop whose iterations do not depend on each other, which Beta 1 checks; unrolled."""
    del directives
    return _unrolled(_range(start, stop, step), independent=True)


def sequential_range(start: int, stop: int | None = None, step: int = 1, *, directives: object = None) -> range:
    """A loop whose iterations may depend on the one before; unrolled."""
    del directives
    return _unrolled(_range(start, stop, step), independent=False)


def static_range(start: int, stop: int | None = None, step: int = 1) -> range:
    """A loop that is unrolled."""
    return _unrolled(_range(start, stop, step), independent=False)


def _bound(value: object, what: str) -> TileOrNumber:
    if isinstance(value, VirtualRegister):
        return value
    number = whole(value)
    if number is None:
        raise refuse(f"{what} is {value!r}; expected a whole number or a register")
    return number


def _begin(lower: object, upper: object, step: object, what: str) -> VirtualRegister:
    tracer = current(what)
    _refuse_in_order(tracer, what)
    stride = whole(step)
    if stride is None or stride < 1:
        raise refuse(f"{what}: step={step!r}; expected a whole number of 1 or more, known when the kernel is traced")
    index = tracer.register("index")
    operands: dict[str, TileOrNumber | None] = {
        "index": index, "lower": _bound(lower, f"{what}: lower"), "upper": _bound(upper, f"{what}: upper"),
    }  # fmt: skip
    tracer.emit("fori_loop", operands, {"step": stride, "first_local": len(tracer.tensors)})
    return index


def _refuse_in_order(tracer: Tracer, what: str) -> None:
    if tracer.in_order:
        raise refuse(f"{what} inside of nl.no_reorder(): loops of the device are not supported there")


def fori_loop(lower: object, upper: object, body_fun: Callable[[VirtualRegister], object], step: int = 1) -> None:
    """A loop on the device: `body_fun(i)` is traced once, with a register for the index; bounds may be registers."""
    index = _begin(lower, upper, step, "nl.fori_loop")
    body_fun(index)
    current("nl.fori_loop").emit("end_loop", {})


def while_loop(init: VirtualRegister, body_fun: Callable[[VirtualRegister], VirtualRegister]) -> None:
    """A loop on the device while a register is not 0: `body_fun(register)` is traced once, and returns the next one."""
    tracer = current("nl.while_loop")
    _refuse_in_order(tracer, "nl.while_loop")
    if not isinstance(init, VirtualRegister):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse(f"nl.while_loop: init is {init!r}; expected a register of nisa.register_alloc")
    condition = tracer.register("condition")
    tracer.emit("register_move", {"dst": condition, "src": init})
    tracer.emit("while_loop", {"condition": condition}, {"first_local": len(tracer.tensors)})
    following = body_fun(condition)
    if not isinstance(following, VirtualRegister):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse("nl.while_loop: the body returns no register; it must return the next condition")
    tracer.emit("register_move", {"dst": condition, "src": following})
    tracer.emit("end_loop", {})


def dynamic_range(start: object, stop: object = None, step: int = 1) -> Iterator[VirtualRegister]:
    """`for i in nl.dynamic_range(…)`: a loop on the device, whose body is traced once with a register for the index."""
    lower, upper = (0, start) if stop is None else (start, stop)
    index = _begin(lower, upper, step, "nl.dynamic_range")
    yield index
    current("nl.dynamic_range").emit("end_loop", {})


@contextmanager
def no_reorder() -> Generator[None]:
    """`with nl.no_reorder():` keeps the order of the source, which is the order here anyway."""
    tracer = current("nl.no_reorder")
    tracer.in_order += 1
    try:
        yield
    finally:
        tracer.in_order -= 1


def loop_reduce(x: object, op: object, loop_indices: object, *, dtype: object = None, mask: object = None) -> NkiTensor:
    """Beta 1: `b = nl.loop_reduce(a, …)` inside loops is b reduced with a over the loops of these indices."""
    tracer = current("nl.loop_reduce")
    tracer.note_legacy("nl.loop_reduce")
    data = on_chip(x, "nl.loop_reduce")
    indices = sequence(loop_indices)
    if not indices or not all(isinstance(one, LoopIndex) for one in indices):
        raise refuse("nl.loop_reduce: loop_indices are those of nl.affine_range and nl.sequential_range")
    reduced = frozenset(one.loop for one in indices if isinstance(one, LoopIndex))
    held = tracer.loops.reduction(call_path(), reduced)
    first = held.tile is None
    if held.tile is None:
        held.tile = result_tile(tracer, data.shape, dtype, data.dtype)
        tracer.loops.reduced.add(held.tile.elements.tensor)
    start = len(tracer.instructions)
    source = data if first else binary(alu_name(op), held.tile, data, held.tile.dtype, mask)
    tracer.emit("tensor_copy", {"dst": held.tile, "src": source}, mask=mask)
    tracer.loops.exempt(tracer.program, range(start, len(tracer.instructions)))
    return held.tile
