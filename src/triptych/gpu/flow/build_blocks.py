"""Function -> FlowGraph: cut the body into basic blocks and connect them."""

from __future__ import annotations

from dataclasses import dataclass, field

from triptych.core.errors import PtxSyntaxError
from triptych.core.source import SourceLocation
from triptych.gpu.flow.graph import Block, FlowGraph, connect_blocks, instruction_effect
from triptych.gpu.isa.effects import Effect
from triptych.gpu.syntax.ast import BranchTargets, Function, Group, Instruction, Label, Symbol


@dataclass(slots=True)
class _Piece:
    """A block in the making."""

    labels: list[str] = field(default_factory=list[str])
    instructions: list[Instruction] = field(default_factory=list[Instruction])


def build_blocks(function: Function, *, name: str = "<ptx>", keep: frozenset[str] = frozenset()) -> FlowGraph:
    """Cut a function with a body into basic blocks.

    A call is passed over: its block goes on behind it. The labels of `keep` start a block though no branch of the
    function names them.

    A block ends after what chooses the next one (`bra`, `ret` …), guarded or not, after a barrier of the launch's
    block, and before a label that a branch names (others only serve debug information). Unreachable blocks are kept.
    An empty body gives one empty block, and so does a label at the end that a branch names (compilers write it where
    the source promises that it is never reached): both fall through to the exit.

    Raises:
        PtxSyntaxError: the body's end can be reached by falling off it; a branch has no such label. `name` is the
            file's name in the error.
    """
    pieces = _cut(function, keep)
    if not pieces:
        return connect_blocks([Block(0, (), (), (), 1)])
    numbers = {label: index for index, piece in enumerate(pieces) for label in piece.labels}
    tables = {table.name: table for table in function.body or () if isinstance(table, BranchTargets)}
    blocks: list[Block] = []
    for index, piece in enumerate(pieces):
        where = SourceLocation(name, piece.instructions[-1].line if piece.instructions else function.line)
        targets = _find_targets(piece, numbers, tables, len(pieces), where)
        fall_through = None if _always_leaves(piece) else index + 1
        if fall_through == len(pieces) and piece.instructions:
            raise PtxSyntaxError(
                f"the end of '{function.name}' can be reached without 'ret' or 'exit'",
                where=where,
                hint="end it with 'ret;'",
            )
        blocks.append(Block(index, tuple(piece.labels), tuple(piece.instructions), targets, fall_through))
    return connect_blocks(blocks)


def _cut(function: Function, keep: frozenset[str]) -> list[_Piece]:
    named = _find_named_labels(function) | keep
    pieces: list[_Piece] = []
    piece = _Piece()
    for statement in function.body or ():
        if isinstance(statement, Label):
            if statement.name not in named:
                continue
            if piece.instructions:
                pieces.append(piece)
                piece = _Piece()
            piece.labels.append(statement.name)
        elif isinstance(statement, Instruction):
            piece.instructions.append(statement)
            effect = instruction_effect(statement)
            if effect.ends_block or effect.waits:
                pieces.append(piece)
                piece = _Piece()
    if piece.instructions or piece.labels:
        pieces.append(piece)
    return pieces


def _find_named_labels(function: Function) -> set[str]:
    named: set[str] = set()
    for statement in function.body or ():
        if isinstance(statement, BranchTargets):
            named.update(statement.labels)
        elif isinstance(statement, Instruction) and instruction_effect(statement) in (Effect.BRANCH, Effect.CALL):
            named.update(operand.name for operand in statement.operands if isinstance(operand, Symbol))
    return named


def _always_leaves(piece: _Piece) -> bool:
    if not piece.instructions:
        return False
    last = piece.instructions[-1]
    effect = instruction_effect(last)
    return effect.ends_block and effect is not Effect.CALL and last.guard is None


def _find_targets(
    piece: _Piece, numbers: dict[str, int], tables: dict[str, BranchTargets], leave: int, where: SourceLocation
) -> tuple[int, ...]:
    last = piece.instructions[-1] if piece.instructions else None
    effect = Effect.NONE if last is None else instruction_effect(last)
    if last is None or not effect.ends_block:
        return ()
    if effect.leaves:
        return (leave,)
    if effect is Effect.CALL:
        return tuple(numbers[o.name] for o in last.operands if isinstance(o, Symbol) and o.name in numbers)
    target = last.operands[-1] if last.operands else None
    if isinstance(target, Group):  # to the callers
        return (leave,)
    if not isinstance(target, Symbol):
        raise PtxSyntaxError(f"the last operand of '{last.opcode}' must be a label", where=where)
    if effect is Effect.BRANCH:
        labels = (target.name,)
    elif target.name in tables:
        labels = tables[target.name].labels
    else:
        raise PtxSyntaxError(f"'{target.name}' is not a '.branchtargets' list of this function", where=where)
    unknown = [label for label in labels if label not in numbers]
    if unknown:
        raise PtxSyntaxError(f"'{unknown[0]}' is not a label of this function", where=where)
    return tuple(numbers[label] for label in labels)
