"""Loops over arrays as LLVM: a counter, and what the body hands from round to round."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

_I32 = ir.IntType(32)
I64, FLOAT, DOUBLE = ir.IntType(64), ir.FloatType(), ir.DoubleType()
POINTER = ir.PointerType()


def whole(value: int) -> ir.Constant:
    """A whole number."""
    return ir.Constant(I64, value)


def function(module: ir.Module, name: str, arguments: Sequence[ir.Type]) -> tuple[ir.IRBuilder, Sequence[ir.Value]]:
    """A function of the module that gives nothing back, open at its beginning, and its arguments."""
    made = ir.Function(module, ir.FunctionType(ir.VoidType(), arguments), name)
    return ir.IRBuilder(made.append_basic_block("begin")), made.args


def loop(
    builder: ir.IRBuilder,
    begin: ir.Value,
    end: ir.Value,
    step: int,
    carried: Sequence[ir.Value],
    body: Callable[[ir.Value, Sequence[ir.Value]], Sequence[ir.Value]],
) -> Sequence[ir.Value]:
    """`body(counter, carried)` from `begin` by steps while the counter is below `end`: the last values.

    The builder goes on behind the loop.
    """
    before = builder.block
    head, inside, behind = (builder.append_basic_block(name) for name in ("head", "inside", "behind"))
    builder.branch(head)
    builder.position_at_end(head)
    counter = builder.phi(I64)
    counter.add_incoming(begin, before)
    values = [builder.phi(one.type) for one in carried]
    for value, one in zip(values, carried, strict=True):
        value.add_incoming(one, before)
    builder.cbranch(builder.icmp_signed("<", counter, end), inside, behind)
    builder.position_at_end(inside)
    made = body(counter, values)
    counter.add_incoming(builder.add(counter, whole(step)), builder.block)
    for value, one in zip(values, made, strict=True):
        value.add_incoming(one, builder.block)
    builder.branch(head)
    builder.position_at_end(behind)
    return values


def whole_steps(builder: ir.IRBuilder, count: ir.Value, step: int) -> ir.Value:
    """The largest multiple of a step, a power of two, that is at most `count`."""
    return builder.and_(count, whole(-step))


def element(builder: ir.IRBuilder, base: ir.Value, index: ir.Value, kind: ir.Type) -> ir.Value:
    """The address of an element."""
    return builder.gep(base, [index], source_etype=kind)


def vector_of(kind: ir.Type, lanes: int) -> ir.Type:
    """So many lanes of a kind; one: the kind itself."""
    return kind if lanes == 1 else ir.VectorType(kind, lanes)


def splat(kind: ir.Type, value: float) -> ir.Constant:
    """A value in all lanes of a kind."""
    if isinstance(kind, ir.VectorType):
        return ir.Constant(kind, [ir.Constant(kind.element, value)] * kind.count)
    return ir.Constant(kind, value)


def in_all_lanes(builder: ir.IRBuilder, value: ir.Value, kind: ir.Type) -> ir.Value:
    """A value in each lane of a kind."""
    if not isinstance(kind, ir.VectorType):
        return value
    undefined, first = ir.Constant(kind, ir.Undefined), ir.Constant(_I32, 0)
    alone = builder.insert_element(undefined, value, first)
    return builder.shuffle_vector(alone, undefined, ir.Constant(ir.VectorType(_I32, kind.count), [first] * kind.count))


def fused(builder: ir.IRBuilder, intrinsic: str, left: ir.Value, right: ir.Value, added: ir.Value) -> ir.Value:
    """left · right + added by `fma`, rounded once, or `fmuladd`, where the processor may round twice."""
    kind: ir.Type = left.type
    name = f"llvm.{intrinsic}.{_suffix(kind)}"
    found = builder.module.globals.get(name)
    made = found or ir.Function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
    return builder.call(made, [left, right, added])


def _suffix(kind: ir.Type) -> str:
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_suffix(kind.element)}"
    return "f32" if kind is FLOAT else "f64"
