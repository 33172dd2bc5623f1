"""`nki.language`: element-wise functions. Each becomes one engine instruction where the hardware has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from triptych.languages.nki.language_functions.renaming import also_called
from triptych.languages.nki.tracing import buffers
from triptych.languages.nki.tracing.dtypes import (
    Dtype,
    bool_,
    dtype_name,
    float32,
    nki_dtype,
    promote,
    promote_number,
    uint8,
)
from triptych.languages.nki.tracing.forms import shared_attributes
from triptych.languages.nki.tracing.indexing import number, refuse
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import Tracer, current
from triptych.neuron.isa import Engine, Space
from triptych.neuron.isa.alu import ABSENT, ALU, AluKind
from triptych.neuron.isa.trace import BETA1, AttributeValue

_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
_LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor"})
_INTEGERS_32 = frozenset({"int32", "uint32"})
_MOVING_MAXIMUM = 512


def on_chip(value: object, what: str) -> NkiTensor:
    """`value`, which must be a tile in SBUF or PSUM.

    Raises:
        NkiError: for anything else, with what to do.
    """
    if not isinstance(value, NkiTensor):
        raise refuse(f"{what}: a {type(value).__name__} is no tile")
    if not value.on_chip:
        raise refuse(
            f"{what}: operand `{value.name}` must be in ['sbuf', 'psum'], got {value.buffer.name}",
            "load it first: nl.load, or nisa.dma_copy into a tile of nl.ndarray",
        )
    if not value.size:
        raise refuse(f"{what}: operand `{value.name}` of shape {list(value.shape)} is empty")
    return value


def result_tile(tracer: Tracer, shape: Sequence[int], dtype: object, default: Dtype) -> NkiTensor:
    """A new SBUF tile for a result."""
    return tracer.allocate(shape, default if dtype is None else nki_dtype(dtype), buffers.sbuf)


def is_number(value: object) -> bool:
    """Whether `value` is a Python or numpy number."""
    return isinstance(value, bool | int | float | np.number | np.bool_)


def _per_partition(small: NkiTensor, large: NkiTensor) -> bool:
    """Whether `small` has one element for each partition of `large`."""
    return small.size == small.shape[0] == large.shape[0] and large.size > small.size


def binary(name: str, x: object, y: object, dtype: object = None, mask: object = None) -> NkiTensor:
    """One element-wise operation of two tiles, or of a tile and a number or a tile of one element a partition."""
    tracer = current(f"nl.{name}")
    if mask is not None:
        tracer.note_legacy("mask=")
    if is_number(x) and is_number(y):
        raise refuse(f"nl.{name}: at least one operand must be a tile")
    left = number(x) if is_number(x) else on_chip(x, f"nl.{name}")
    right = number(y) if is_number(y) else on_chip(y, f"nl.{name}")
    if name in ABSENT:
        return _absent(tracer, name, left, right, dtype, mask)
    return _present(tracer, name, left, right, dtype, mask)


def _check_current(tracer: Tracer, name: str, x: object, y: object) -> None:
    """What `import nki` does not take, and AWS's simulator computes. Source: the known issues of NKI 0.4."""
    if tracer.generation == BETA1 or name in ABSENT:
        return
    if isinstance(x, NkiTensor) and isinstance(y, NkiTensor) and x.shape[0] == y.shape[0] and x.size != y.size:
        side, small, large = ("rhs", y, x) if y.size < x.size else ("lhs", x, y)
        tracer.breach(
            f"nl.{name} of tiles of the shapes {list(x.shape)} and {list(y.shape)}: 'dst' free total elements "
            f"{large.size // large.shape[0]} != '{side}' free total elements {small.size // small.shape[0]}",
            "nl.broadcast_to repeats free axes; nisa.tensor_scalar takes a tile of one element a partition",
        )
    if name == "power" and isinstance(x, NkiTensor) and is_number(y):
        tracer.breach(
            "nl.power takes no number for an exponent, only a tile",
            "fill one: nl.full; or nisa.tensor_scalar with op0=nl.power",
        )


def _present(
    tracer: Tracer, name: str, left: NkiTensor | float, right: NkiTensor | float, dtype: object, mask: object
) -> NkiTensor:
    default = _default_dtype(tracer, name, left, right)
    if isinstance(left, NkiTensor) and isinstance(right, NkiTensor):
        if tracer.generation == BETA1 and left.shape[0] != right.shape[0]:
            left, right = _same_partitions(tracer, left, right)
        if _per_partition(right, left):
            return _with_scalar(tracer, name, left, right, False, dtype, default, mask)
        if _per_partition(left, right):
            return _with_scalar(tracer, name, right, left, True, dtype, default, mask)
        return _two_tiles(tracer, name, left, right, dtype, default, mask)
    if isinstance(left, NkiTensor):
        return _with_scalar(tracer, name, left, right, False, dtype, default, mask)
    assert isinstance(right, NkiTensor)
    return _with_scalar(tracer, name, right, left, True, dtype, default, mask)


def _same_partitions(tracer: Tracer, left: NkiTensor, right: NkiTensor) -> tuple[NkiTensor, NkiTensor]:
    """Beta 1 repeats a single partition, by a product with a column of ones."""
    count = max(left.shape[0], right.shape[0])
    tiles = [repeat_partition(tracer, one, count) if one.shape[0] == 1 < count else one for one in (left, right)]
    return tiles[0], tiles[1]


def repeat_partition(tracer: Tracer, x: NkiTensor, partitions: int) -> NkiTensor:
    """A tile of one partition in several: a product with a row of ones, which is exact."""
    dtype = x.dtype if x.dtype.name in ("float32", "bfloat16", "float16") else float32
    source = x.reshape((1, x.size))
    if dtype != x.dtype or x.buffer.space is not Space.SBUF:
        source = result_tile(tracer, (1, x.size), dtype, dtype)
        tracer.emit("tensor_copy", {"dst": source, "src": x.reshape((1, x.size))})
    ones = result_tile(tracer, (1, partitions), dtype, dtype)
    tracer.emit("memset", {"dst": ones, "value": 1.0}, engine=Engine.VECTOR)
    target = result_tile(tracer, (partitions, x.size), x.dtype, x.dtype)
    for start in range(0, x.size, _MOVING_MAXIMUM):
        end = min(start + _MOVING_MAXIMUM, x.size)
        product = tracer.allocate((partitions, end - start), float32, buffers.psum)
        tracer.emit("nc_matmul", {"dst": product, "stationary": ones, "moving": source[:, start:end]})
        tracer.emit("tensor_copy", {"dst": target[:, start:end], "src": product})
    return target.reshape((partitions, *x.shape[1:]))


def _default_dtype(tracer: Tracer, name: str, left: NkiTensor | float, right: NkiTensor | float) -> Dtype:
    if tracer.generation == BETA1 and (name in _COMPARISONS or name in _LOGICAL):
        return bool_
    if isinstance(left, NkiTensor):
        return promote(left.dtype, right.dtype) if isinstance(right, NkiTensor) else promote_number(left.dtype, right)
    assert isinstance(right, NkiTensor)
    return promote_number(right.dtype, left)


def _absent(
    tracer: Tracer, name: str, x: NkiTensor | float, y: NkiTensor | float, dtype: object, mask: object
) -> NkiTensor:
    """Beta 1 builds a division from a reciprocal; nothing else that is absent can be built."""
    if name != "divide" or tracer.generation != BETA1:
        if tracer.notices is None:
            raise refuse(f"nl.{name} has no hardware instruction: no engine can {name}", ABSENT[name])
        return _present(tracer, name, x, y, dtype, mask)
    if not isinstance(y, NkiTensor):
        return binary("multiply", x, 1.0 / y, dtype, mask)
    inverse = result_tile(tracer, y.shape, None, float32)
    tracer.emit("reciprocal", {"dst": inverse, "data": y}, mask=mask)
    default = _default_dtype(tracer, "multiply", x, y)
    return binary("multiply", x, inverse, default if dtype is None else dtype, mask)


def _two_tiles(
    tracer: Tracer, name: str, x: NkiTensor, y: NkiTensor, dtype: object, default: Dtype, mask: object
) -> NkiTensor:
    shape = _common_shape(name, x, y)
    target = result_tile(tracer, shape, dtype, default)
    left = x if x.shape == shape else x.broadcast_to(shape)
    right = y if y.shape == shape else y.broadcast_to(shape)
    integer = (
        target.dtype == x.dtype == y.dtype
        and dtype_name(x.dtype) in _INTEGERS_32
        and ALU[name].kind is AluKind.ARITHMETIC
    )
    attributes = shared_attributes("tensor_tensor", op=name, integer=integer)
    engine = Engine.GPSIMD if integer else ALU[name].engines[0]
    tracer.emit("tensor_tensor", {"dst": target, "data1": left, "data2": right}, attributes, engine=engine, mask=mask)
    return target


def _common_shape(name: str, x: NkiTensor, y: NkiTensor) -> tuple[int, ...]:
    if x.shape == y.shape:
        return x.shape
    if x.shape[0] != y.shape[0]:
        raise refuse(
            f"nl.{name}: operands `{x.name}` and `{y.name}` have {x.shape[0]} and {y.shape[0]} partitions "
            f"(shapes {list(x.shape)} and {list(y.shape)})",
            "engines do not broadcast over partitions: repeat the smaller with nl.broadcast_to first",
        )
    try:
        return np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        raise refuse(f"nl.{name}: shapes {list(x.shape)} and {list(y.shape)} do not broadcast") from None


def _with_scalar(
    tracer: Tracer,
    name: str,
    data: NkiTensor,
    operand: NkiTensor | float,
    reverse: bool,
    dtype: object,
    default: Dtype,
    mask: object,
) -> NkiTensor:
    target = result_tile(tracer, data.shape, dtype, default)
    attributes = shared_attributes("tensor_scalar", op0=name, reverse0=reverse)
    bits = ALU[name].kind is AluKind.BITVEC
    if isinstance(operand, NkiTensor):
        operand = _column(tracer, operand, bits)
    tracer.emit(
        "tensor_scalar",
        {"dst": target, "data": data, "operand0": operand},
        attributes,
        engine=ALU[name].engines[0],
        mask=mask,
    )
    return target


def _column(tracer: Tracer, operand: NkiTensor, bits: bool) -> NkiTensor:
    """The [P, 1] tile that tensor_scalar takes: float32, except for bit operations."""
    if bits or operand.dtype == float32:
        return operand
    wide = result_tile(tracer, operand.shape, float32, float32)
    tracer.emit("tensor_copy", {"dst": wide, "src": operand})
    return wide


def _define_binary(name: str, meaning: str) -> Callable[..., NkiTensor]:
    def function(x: object, y: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
        _check_current(current(f"nl.{name}"), name, x, y)
        return binary(name, x, y, dtype, mask)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{meaning}, element by element: tile and tile, or tile and number or [P, 1] tile."
    return function


def _define_unary(name: str, meaning: str) -> Callable[..., NkiTensor]:
    def function(x: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
        return activate(name, x, dtype, mask)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{meaning} of each element, by the Scalar engine."
    return function


def activate(name: str, x: object, dtype: object = None, mask: object = None, scale: float = 1.0) -> NkiTensor:
    """An activation function of each element."""
    tracer = current(f"nl.{name}")
    data = on_chip(x, f"nl.{name}")
    target = result_tile(tracer, data.shape, dtype, data.dtype)
    operands: dict[str, NkiTensor | float | None] = {"dst": target, "data": data}
    if scale != 1.0:
        operands["scale"] = scale
    tracer.emit("activation", operands, shared_attributes("activation", function=name), mask=mask)
    return target


add = _define_binary("add", "x + y")
subtract = _define_binary("subtract", "x - y")
multiply = _define_binary("multiply", "x * y")
divide = _define_binary(
    "divide", "x / y, which no engine has: Beta 1 builds it from a reciprocal, `import nki` refuses it"
)
mod = _define_binary("mod", "The remainder, which no engine has")
fmod = _define_binary("fmod", "The remainder with the sign of x, which no engine has")
maximum = _define_binary("maximum", "The larger")
minimum = _define_binary("minimum", "The smaller")
abs_max = _define_binary("abs_max", "The larger magnitude (NeuronCore-v4)")
abs_min = _define_binary("abs_min", "The smaller magnitude (NeuronCore-v4)")
power = _define_binary("power", "x to the power of y")
equal = _define_binary("equal", "x == y as 1 or 0")
not_equal = _define_binary("not_equal", "x != y as 1 or 0")
less = _define_binary("less", "x < y as 1 or 0")
less_equal = _define_binary("less_equal", "x <= y as 1 or 0")
greater = _define_binary("greater", "x > y as 1 or 0")
greater_equal = _define_binary("greater_equal", "x >= y as 1 or 0")
logical_and = _define_binary("logical_and", "Whether both are not 0")
logical_or = _define_binary("logical_or", "Whether one is not 0")
logical_xor = _define_binary("logical_xor", "Whether exactly one is not 0")
bitwise_and = _define_binary("bitwise_and", "x & y of integers")
bitwise_or = _define_binary("bitwise_or", "x | y of integers")
bitwise_xor = _define_binary("bitwise_xor", "x ^ y of integers")
left_shift = _define_binary("left_shift", "x << y of integers")
right_shift = _define_binary("right_shift", "x >> y of integers, logical")

abs = _define_unary("abs", "The magnitude")  # the language's own name
square = _define_unary("square", "The square")
exp = _define_unary("exp", "e to the power")
log = _define_unary("log", "The natural logarithm")
sqrt = _define_unary("sqrt", "The square root")
rsqrt = _define_unary("rsqrt", "1 over the square root")
tanh = _define_unary("tanh", "The hyperbolic tangent")
sigmoid = _define_unary("sigmoid", "1 / (1 + e^-x)")
relu = _define_unary("relu", "The larger of x and 0")
gelu = _define_unary("gelu", "x times the normal distribution function")
gelu_apprx_tanh = _define_unary("gelu_apprx_tanh", "GELU's tanh form")
gelu_apprx_sigmoid = _define_unary("gelu_apprx_sigmoid", "x sigmoid(1.702 x)")
gelu_apprx_sigmoid_dx = _define_unary("gelu_apprx_sigmoid_dx", "The derivative of x sigmoid(1.702 x)")
gelu_dx = _define_unary("gelu_dx", "The derivative of GELU")
silu = _define_unary("silu", "x sigmoid(x)")
silu_dx = _define_unary("silu_dx", "The derivative of x sigmoid(x)")
softplus = _define_unary("softplus", "log(1 + e^x)")
mish = _define_unary("mish", "x tanh(softplus(x))")
erf = _define_unary("erf", "The error function")
erf_dx = _define_unary("erf_dx", "The derivative of the error function")
arctan = _define_unary("arctan", "The arc tangent, for arguments in [-pi/2, pi/2]")
sign = _define_unary("sign", "-1, 0 or 1 by the sign")


def negative(x: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """-x of each element, by the Scalar engine's scale."""
    return activate("copy", x, dtype, mask, scale=-1.0)


def reciprocal(x: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """1 / x of each element, by the Vector engine."""
    tracer = current("nl.reciprocal")
    data = on_chip(x, "nl.reciprocal")
    target = result_tile(tracer, data.shape, dtype, data.dtype)
    tracer.emit("reciprocal", {"dst": target, "data": data}, mask=mask)
    return target


@also_called(src="x")
def copy(x: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """A copy in SBUF: how a product leaves PSUM. By the Vector engine; before NKI 0.6, so Beta 1, by the Scalar one."""
    tracer = current("nl.copy")
    data = on_chip(x, "nl.copy")
    target = result_tile(tracer, data.shape, dtype, data.dtype)
    floats = "i" not in data.dtype.kind and "u" not in data.dtype.kind
    engine = Engine.SCALAR if tracer.generation == BETA1 and floats else Engine.VECTOR
    tracer.emit("tensor_copy", {"dst": target, "src": data}, engine=engine, mask=mask)
    return target


def invert(x: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """All bits of each integer inverted."""
    data = on_chip(x, "nl.invert")
    return binary("bitwise_xor", data, -1 if data.dtype.kind == "i" else np.iinfo(data.dtype).max, dtype, mask)


def logical_not(x: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """1 where an element is 0, else 0."""
    return binary("equal", x, 0, dtype, mask)


def where(condition: object, x: object, y: object, dtype: object = None, *, mask: object = None) -> NkiTensor:
    """x where the condition is not 0, else y; x and y are tiles or numbers."""
    tracer = current("nl.where")
    chosen = on_chip(condition, "nl.where")
    tiles = [on_chip(one, "nl.where") for one in (x, y) if not is_number(one)]
    default = float32 if not tiles else promote(tiles[0].dtype, tiles[-1].dtype)
    target = result_tile(tracer, chosen.shape, dtype, default)
    _fill(tracer, target, y, mask)
    predicate = chosen
    if chosen.dtype != uint8:
        predicate = result_tile(tracer, chosen.shape, uint8, uint8)
        attributes: dict[str, AttributeValue] = {"op0": "not_equal"}
        tracer.emit("tensor_scalar", {"dst": predicate, "data": chosen, "operand0": 0.0}, attributes, mask=mask)
    source = number(x) if is_number(x) else _as(tracer, on_chip(x, "nl.where"), target, mask)
    tracer.emit("tensor_copy_predicated", {"dst": target, "src": source, "predicate": predicate}, mask=mask)
    return target


def _fill(tracer: Tracer, target: NkiTensor, value: object, mask: object) -> None:
    if is_number(value):
        tracer.emit("memset", {"dst": target, "value": number(value)}, mask=mask)
        return
    source = on_chip(value, "nl.where")
    tracer.emit("tensor_copy", {"dst": target, "src": _spread(source, target.shape)}, mask=mask)


def _as(tracer: Tracer, tile: NkiTensor, target: NkiTensor, mask: object) -> NkiTensor:
    """The tile with the shape and the dtype of another, in SBUF where the dtype must change."""
    source = _spread(tile, target.shape)
    if source.dtype == target.dtype and source.buffer.space is Space.SBUF:
        return source
    changed = result_tile(tracer, target.shape, target.dtype, target.dtype)
    tracer.emit("tensor_copy", {"dst": changed, "src": source}, mask=mask)
    return changed


def _spread(tile: NkiTensor, shape: tuple[int, ...]) -> NkiTensor:
    return tile if tile.shape == shape else tile.broadcast_to(shape)


_FUNCTIONS = (
    add, subtract, multiply, divide, mod, fmod, maximum, minimum, power, equal, not_equal, less, less_equal, greater,
    greater_equal, logical_and, logical_or, logical_xor, bitwise_and, bitwise_or, bitwise_xor, left_shift, right_shift,
)  # fmt: skip
BINARY: Mapping[str, Callable[..., NkiTensor]] = {function.__name__: function for function in _FUNCTIONS}
"""The element-wise functions of two operands, by name."""
