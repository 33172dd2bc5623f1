"""`while register:`, a loop on the device: Python runs its body once, between two looks at the condition."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING

from triptych.languages.nki.tracing.indexing import refuse

if TYPE_CHECKING:
    from triptych.languages.nki.tracing.registers import VirtualRegister
    from triptych.languages.nki.tracing.tracer import Tracer

_ALTERNATIVE = "nl.while_loop(register, body) is the same loop, with a function for its body"
Place = tuple[int | None, int | None, int | None, int | None]
"""First and last line, and the columns, of an expression."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenLoop:
    """A `while` whose body is being traced."""

    frame: FrameType
    place: Place
    condition: VirtualRegister


def look(register: VirtualRegister, frame: FrameType) -> bool | None:
    """What the truth value of a register is for `frame`: whether Python runs the body; None where no `while` asks.

    The body is traced at the first look of a loop, at the next its end is recorded.

    Raises:
        NkiError: for a loop that the device does not have: with `break`, `return`, `else`, or a condition that the body
            replaced by another register.
    """
    tracer = register.tracer
    place = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    loop = _loops(frame).get(place)
    if loop is None:
        return None
    top = tracer.open_loops[-1] if tracer.open_loops else None
    if top is None or (top.frame, top.place) != (frame, place):
        _begin(tracer, loop, OpenLoop(frame, place, register))
        return True
    if top.condition is not register:
        raise refuse(
            "the condition of `while register:` is another register at the end of its body than at its begin",
            "change what the register holds: nisa.register_move, nisa.register_load",
        )
    tracer.open_loops.pop()
    tracer.emit("end_loop", {})
    return False


def _begin(tracer: Tracer, loop: ast.While, opened: OpenLoop) -> None:
    leaving = next(_leaving(loop), None)
    if leaving is not None:
        raise refuse(f"`while register:` has {leaving}: a loop of the device ends by its condition alone", _ALTERNATIVE)
    if tracer.in_order:
        raise refuse("`while register:` inside of nl.no_reorder(): loops of the device are not supported there")
    tracer.emit("while_loop", {"condition": opened.condition}, {"first_local": len(tracer.tensors)})
    tracer.open_loops.append(opened)


def _leaving(loop: ast.While) -> Iterator[str]:
    """What leaves the loop before its condition is looked at."""
    if loop.orelse:
        yield "an `else`"
    waiting: list[tuple[ast.AST, bool]] = [(one, True) for one in loop.body]
    while waiting:
        node, own = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Return) or (isinstance(node, ast.Break) and own):
            yield f"a `{type(node).__name__.lower()}`"
        is_loop = isinstance(node, ast.For | ast.While)
        outside: list[ast.stmt] = node.orelse if isinstance(node, ast.For | ast.While) else []
        waiting += [(one, own and (not is_loop or one in outside)) for one in ast.iter_child_nodes(node)]


_MOST_FILES = 64
_known: dict[str, tuple[list[str], Mapping[Place, ast.While]]] = {}
"""The loops of files, and the lines that they were found in: `linecache` has one list of a file until it reads anew."""


def _loops(frame: FrameType) -> Mapping[Place, ast.While]:
    """The loops of a frame's file whose condition is a name, or part of what a name stands for."""
    file = frame.f_code.co_filename
    lines = linecache.getlines(file, frame.f_globals)
    known = _known.get(file)
    if known is not None and known[0] is lines:
        return known[1]
    if len(_known) >= _MOST_FILES:
        _known.clear()
    found = _loops_of("".join(lines))
    _known[file] = lines, found
    return found


def _loops_of(text: str) -> Mapping[Place, ast.While]:
    """By the places that ask for the condition: the loop's to Python 3.11, the condition's to later ones."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # what was read is not what runs
        return {}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.While)]
    plain = [one for one in found if isinstance(one.test, ast.Name | ast.Attribute | ast.Subscript)]
    return {_place(asking): one for one in plain for asking in (one, one.test)}


def _place(node: ast.stmt | ast.expr) -> Place:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
