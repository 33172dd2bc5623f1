"""The engines' reduction registers: what each reduce_cmd makes of them, over chains of instructions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from one_kernel import F32, filled, random, refused, run, run_kernel, same, tile

from triptych.core.errors import NkiError
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki.tracing.tensors import NkiTensor

Command = nisa.reduce_cmd


def integers(*shape: int, seed: int = 90) -> np.ndarray:
    """Small whole numbers: their sums are exact, whatever the order."""
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(F32)


@pytest.mark.parametrize("operation", [nl.add, nl.maximum, nl.minimum, nl.multiply])
def test_tensor_scalar_reduce_goes_on(operation: Callable[..., object]) -> None:
    def body(res: NkiTensor, a: NkiTensor, b: NkiTensor, start: NkiTensor) -> None:
        out = tile(64, 6)
        nisa.tensor_scalar_reduce(
            out, a, nl.add, 1.0, operation, None, reduce_cmd=Command.load_reduce, reduce_init=start
        )
        nisa.tensor_scalar_reduce(out, b, nl.add, 1.0, operation, res, reduce_cmd=Command.reduce)

    a, b, start = integers(64, 6), integers(64, 6, seed=91), integers(64, 1, seed=92)
    both = np.concatenate([start, a + 1, b + 1], axis=1).astype(np.float64)
    reducers = {"add": np.sum, "maximum": np.max, "minimum": np.min, "multiply": np.prod}
    expected = reducers[operation.__name__](both, axis=1, keepdims=True)
    (found,), findings = run_kernel(body, [a, b, start], ((64, 1), F32))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert findings == {}


def test_activation_sums_over_tiles() -> None:
    def body(res: NkiTensor, a: NkiTensor, b: NkiTensor) -> None:
        out = tile(32, 8)
        nisa.activation(out, nl.square, a, reduce_op=nl.add, reduce_cmd=Command.reset_reduce)
        nisa.activation(out, nl.square, b, reduce_op=nl.add, reduce_res=res, reduce_cmd=Command.reduce)

    a, b = integers(32, 8), integers(32, 8, seed=93)
    same(run(body, [a, b], ((32, 1), F32))[0], (a**2 + b**2).sum(axis=1, keepdims=True))


def test_a_tile_scales_an_activation() -> None:
    def body(out: NkiTensor, a: NkiTensor, scale: NkiTensor) -> None:
        nisa.activation(out, nl.copy, a, scale=scale)

    a, scale = integers(32, 8), integers(32, 1, seed=97)
    same(run(body, [a, scale], ((32, 8), F32))[0], a * scale)


def test_registers_belong_to_lanes_and_engines() -> None:
    """The Scalar engine's are others than the Vector engine's, and partitions 32 to 63 have theirs."""

    def body(low: NkiTensor, high: NkiTensor, a: NkiTensor) -> None:
        out, part = tile(64, 4), tile(64, 4)
        res = tile(64, 1)
        nisa.tensor_scalar_reduce(out, a, nl.multiply, 1.0, nl.add, None, reduce_cmd=Command.reset_reduce)
        nisa.activation(out, nl.square, a, reduce_op=nl.add, reduce_cmd=Command.reset_reduce)
        nisa.tensor_scalar_reduce(
            part[32:64, :], a[32:64, :], nl.multiply, 1.0, nl.add, None, reduce_cmd=Command.reduce
        )
        nisa.tensor_scalar_reduce(
            part, filled(64, 4, value=0.0), nl.multiply, 1.0, nl.add, res, reduce_cmd=Command.reduce
        )
        nisa.tensor_copy(low, res[0:32, :])
        nisa.dma_copy(high, res[32:64, :])

    a = integers(64, 4)
    low, high = run(body, [a], ((32, 1), F32), ((32, 1), F32))
    same(low, a[:32].sum(axis=1, keepdims=True))
    same(high, 2 * a[32:].sum(axis=1, keepdims=True))


def test_select_reduce_and_range_select_share_them() -> None:
    def body(res: NkiTensor, a: NkiTensor, b: NkiTensor, predicate: NkiTensor) -> None:
        out = tile(16, 8)
        nisa.select_reduce(out, predicate, a, -100.0, reduce_cmd=Command.reset_reduce)
        bounds = [filled(16, 1, value=value) for value in (2.0, 5.0)]
        nisa.range_select(out, b, nl.greater_equal, nl.less, *bounds, reduce_cmd=Command.reduce, reduce_res=res)

    a, b = integers(16, 8), integers(16, 8, seed=94)
    predicate = np.random.default_rng(95).integers(0, 2, (16, 8)).astype(np.uint8)
    expected = np.maximum(np.where(predicate, a, -100.0).max(axis=1), b[:, 2:5].max(axis=1))
    same(run(body, [a, b, predicate], ((16, 1), F32))[0], expected[:, np.newaxis])


@pytest.mark.parametrize(("op0", "op1"), [("multiply", "add"), ("add", "maximum"), ("subtract", "multiply")])
def test_tensor_scalar_cumulative(op0: str, op1: str) -> None:
    def body(first: NkiTensor, second: NkiTensor, a: NkiTensor, start: NkiTensor) -> None:
        zero, one = getattr(nl, op0), getattr(nl, op1)
        nisa.tensor_scalar_cumulative(first, a, zero, one, 2.0, start, reduce_cmd=Command.load_reduce)
        nisa.tensor_scalar_cumulative(second, a, zero, one, 2.0, reduce_cmd=Command.reduce)

    a, start = integers(32, 5), integers(32, 1, seed=96)
    numpy_operations = {"multiply": np.multiply, "add": np.add, "subtract": np.subtract, "maximum": np.maximum}
    held = start[:, 0].astype(np.float64)
    expected = np.empty((32, 10))
    for index in range(10):
        held = numpy_operations[op1](numpy_operations[op0](a[:, index % 5].astype(np.float64), 2.0), held)
        expected[:, index] = held
    first, second = run(body, [a, start], ((32, 5), F32), ((32, 5), F32))
    np.testing.assert_allclose(np.concatenate([first, second], axis=1), expected, rtol=1e-6)


def test_a_cumulative_difference_begins_at_zero() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.tensor_scalar_cumulative(out, a, nl.multiply, nl.subtract, 1.0)

    same(run(body, [np.array([[1, 2, 4, 8]], F32)], ((1, 4), F32))[0], np.array([[1, 1, 3, 5]]))


def test_exponential_sums_over_tiles() -> None:
    def body(out: NkiTensor, res: NkiTensor, a: NkiTensor, most: NkiTensor) -> None:
        nisa.exponential(out, a, most, reduce_cmd=Command.load_reduce, reduce_init=10.0)
        nisa.exponential(out, a, most, reduce_res=res, reduce_cmd=Command.reduce)

    a = random(16, 8)
    most = a.max(axis=1, keepdims=True)
    out, res = run(body, [a, most], ((16, 8), F32), ((16, 1), F32), chip="trn3")
    expected = np.exp(a.astype(np.float64) - most)
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    np.testing.assert_allclose(res, 10 + 2 * expected.sum(axis=1, keepdims=True), rtol=1e-6)


STAGES: list[tuple[object, object, bool, Callable[[np.ndarray], np.ndarray]]] = [
    (nl.multiply, nl.add, False, lambda a: 3 * a + 2),
    (nl.multiply, nl.subtract, False, lambda a: 3 * a - 2),
    (nl.subtract, nl.bypass, True, lambda a: 3 - a),
    (nl.bypass, nl.bypass, False, lambda a: a),
]


@pytest.mark.parametrize(("op0", "op1", "reverse0", "expected"), STAGES)
def test_activate2(op0: object, op1: object, reverse0: bool, expected: Callable[[np.ndarray], np.ndarray]) -> None:
    def body(out: NkiTensor, res: NkiTensor, a: NkiTensor) -> None:
        nisa.activate2(
            out, nl.prelu, a, 3.0, 2.0, op0, op1, relu_param=0.5, reverse0=reverse0, reduce_op=nl.abs_max,
            reduce_res=res, reduce_cmd=Command.reset_reduce,
        )  # fmt: skip

    a = integers(16, 8)
    value = expected(a)
    value = np.where(value >= 0, value, 0.5 * value)
    out, res = run(body, [a], ((16, 8), F32), ((16, 1), F32), chip="trn3")
    same(out, value)
    same(res, np.abs(value).max(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("chip", "body", "message"),
    [
        ("trn2", lambda: nisa.activation(tile(8, 8), nl.exp, tile(8, 8), reduce_op=nl.add), "reduce_cmd is idle"),
        ("trn2", lambda: nisa.activation(tile(8, 8), nl.exp, tile(8, 8), reduce_op=nl.add, reduce_cmd=3),
         "reduce_cmd=3 is no reduce_cmd"),
        ("trn2", lambda: nisa.activation(tile(8, 8), nl.exp, tile(8, 8), reduce_op=nl.add, reduce_cmd=Command.reduce),
         "no instruction before has set"),
        ("trn2", lambda: nisa.tensor_scalar_reduce(tile(8, 8), tile(8, 8), nl.add, 1.0, nl.add, reduce_init=2.0),
         "'reset_reduce' does not load"),
        ("trn2", lambda: nisa.tensor_scalar_reduce(tile(8, 8), tile(8, 8), nl.add, 1.0, nl.add, None,
                                                   reduce_cmd=Command.load_reduce), "needs a value to start from"),
        ("trn2", lambda: nisa.select_reduce(tile(8, 8), tile(8, 8, dtype=nl.uint8), tile(8, 8), 0.0, tile(8, 1)),
         "reduce_res is given, and reduce_cmd is 'idle'"),
        ("trn2", lambda: after_idle(), "no instruction before has set"),
        ("trn2", lambda: nisa.tensor_scalar_cumulative(tile(8, 8), tile(8, 8), nl.add, nl.logical_and, 1.0),
         "op1 is 'logical_and'"),
        ("trn2", lambda: nisa.tensor_scalar_cumulative(tile(8, 8, dtype=nl.int32), tile(8, 8), nl.add, nl.add, 1.0),
         "'dst' .* int32; expected bfloat16"),
        ("trn2", lambda: nisa.tensor_scalar_cumulative(
            tile(8, 8), tile(8, 8), nl.add, nl.add, 1.0, reduce_cmd=Command.load_reduce),
         "starts from: it is missing"),
        ("trn2", lambda: nisa.activate2(tile(8, 8), nl.exp, tile(8, 8), 1.0, 0.0, nl.multiply, nl.add),
         "needs NeuronCore-v4"),
        ("trn3", lambda: nisa.activate2(tile(8, 8), nl.exp, tile(8, 8), 1.0, 0.0, nl.add, nl.add), "the engine has"),
        ("trn3", lambda: nisa.activate2(tile(8, 8), nl.exp, tile(8, 8), 1.0, 0.0, nl.add, nl.bypass, reverse1=True),
         "there is nothing to reverse"),
        ("trn2", lambda: nisa.tensor_tensor(tile(8, 8), tile(8, 8), tile(8, 8), nl.abs_max), "needs NeuronCore-v4"),
    ],
)  # fmt: skip
def test_refused(chip: str, body: Callable[[], object], message: str) -> None:
    refused(body, NkiError, message, chip=chip)


def after_idle() -> None:
    """The Vector engine's registers hold nothing known behind an instruction that left them idle."""
    out, data = tile(8, 8), filled(8, 8)
    nisa.tensor_scalar_reduce(out, data, nl.add, 1.0, nl.maximum, tile(8, 1))
    nisa.select_reduce(out, filled(8, 8, dtype=nl.uint8), data, 0.0)
    nisa.tensor_scalar_reduce(out, data, nl.add, 1.0, nl.maximum, tile(8, 1), reduce_cmd=Command.reduce)
