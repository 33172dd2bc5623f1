"""The quick ways of the tracer give what the slow ones give: index tiles, texts, signatures, lines of the author."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from one_kernel import tile

from triptych.core.errors import NkiError, TriptychError
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.launching.kernel import Kernel
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.neuron.isa.serialise import from_json, to_json


def test_the_same_tiling_at_other_places_is_checked_at_each() -> None:
    """What is known of an index's tiles holds where they begin inside of the axis, and is an error elsewhere."""

    def body(first: int) -> Kernel:
        @nki_beta1.jit
        def kernel(a: NkiTensor) -> object:
            out = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
            rows, columns = nl.arange(128)[:, None], nl.arange(64)[None, :]
            nl.store(out[rows, columns], value=nl.load(a[rows, first + columns]))
            return out

        return kernel

    a = np.arange(128 * 256, dtype=np.float32).reshape(128, 256)
    for first in (0, 64, 192):
        np.testing.assert_array_equal(body(first)(a), a[:, first : first + 64])
    for first in (-1, 193):
        with pytest.raises(NkiError, match="Out-of-bound access"):
            body(first)(a)


def test_the_text_tells_equal_attributes_of_different_types_apart() -> None:
    """1, 1.0 and True are equal in Python, and different in a trace; so are 0.0 and -0.0."""

    @nki.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        held = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=held, src=a)
        nisa.dma_copy(dst=out, src=held)
        return out

    trace = from_json(kernel.capture(np.zeros((8, 8), np.float32)).program.text)
    values = (1, 1.0, True, 0.0, -0.0, float("inf"), (1, True), None, "1")
    program = tuple(replace(trace.programs[0][0], attributes={"x": value}) for value in values)
    rows = json.loads(to_json(replace(trace, programs=(program,))))["programs"][0]
    texts = [json.dumps(row[3]["x"]) for row in rows]
    assert texts == ["1", "1.0", "true", "0.0", "-0.0", '{"float": "inf"}', "[1, true]", "null", '"1"']


def test_reductions_of_inner_axes() -> None:
    """The axes that are kept are walked before those that are reduced; a mask cuts both."""

    @nki_beta1.jit
    def kernel(a: NkiTensor) -> object:
        largest = nl.ndarray((16, 5), dtype=a.dtype, buffer=nl.shared_hbm)
        total = nl.ndarray((16, 1, 5, 1), dtype=a.dtype, buffer=nl.shared_hbm)
        held = nl.load(a)
        nl.store(largest, value=nl.max(held, axis=[1, 3]))
        nl.store(total, value=nl.sum(held, axis=(1, 3), keepdims=True))
        return largest, total

    a = np.random.default_rng(0).standard_normal((16, 3, 5, 7)).astype(np.float32)
    largest, total = kernel(a)
    np.testing.assert_array_equal(largest, a.max((1, 3)))
    np.testing.assert_allclose(total, a.sum((1, 3), keepdims=True), rtol=1e-5)


def test_a_masked_reduction_of_an_inner_axis() -> None:
    """What the mask leaves out of the kept axes is not written, what it leaves out of the reduced ones not read."""

    @nki_beta1.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray((16, 4), dtype=a.dtype, buffer=nl.shared_hbm)
        held = nl.load(a)
        _, i_reduced, _ = nl.mgrid[0:16, 0:3, 0:4]
        nl.store(out, value=nl.max(held, axis=1, mask=i_reduced < 2))
        return out

    a = np.random.default_rng(1).standard_normal((16, 3, 4)).astype(np.float32)
    np.testing.assert_array_equal(kernel(a), a[:, :2].max(1))


def test_an_output_may_be_returned_in_another_shape() -> None:
    """All of a new tensor, in its order."""

    @nki_beta1.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray((8, 12), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=nl.load(a))
        return out.reshape((8, 3, 4))

    a = np.arange(96, dtype=np.float32).reshape(8, 12)
    np.testing.assert_array_equal(kernel(a), a.reshape(8, 3, 4))


def test_a_dtype_beside_the_destination_must_be_its_own() -> None:
    """The first `import nki` took it; another than the destination's is refused."""

    @nki.jit
    def kernel(a: NkiTensor, dtype: object) -> object:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        held, copied = tile(*a.shape), tile(*a.shape)
        nisa.dma_copy(dst=held, src=a)
        nisa.tensor_copy(dst=copied, src=held, dtype=dtype)
        nisa.dma_copy(dst=out, src=copied)
        return out

    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_array_equal(kernel(a, nl.float32), a)
    with pytest.raises(NkiError, match="unexpected keyword argument 'dtype'"):
        kernel(a, nl.bfloat16)


def test_each_call_is_decided_by_its_own_arguments() -> None:
    """What is kept of a call holds for equal arguments alone: other operations, engines, types and numbers are new."""
    a = np.arange(-8, 8, dtype=np.float32).reshape(2, 8)
    calls = [
        (nl.multiply, 2.0, False, nisa.vector_engine, a * 2), (nl.add, 2.0, False, nisa.vector_engine, a + 2),
        (nl.subtract, 3, False, nisa.gpsimd_engine, a - 3), (nl.subtract, 3, True, nisa.gpsimd_engine, 3 - a),
        (np.multiply, -0.5, False, nisa.unknown_engine, a * -0.5), (nl.multiply, 2.0, False, nisa.vector_engine, a * 2),
        (nl.subtract, 5.0, np.True_, nisa.vector_engine, 5 - a), (nl.maximum, 0.0, 0, nisa.unknown_engine, a.clip(0)),
    ]  # fmt: skip

    @nki.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray((len(calls), *a.shape), dtype=a.dtype, buffer=nl.shared_hbm)
        held = tile(*a.shape)
        nisa.dma_copy(dst=held, src=a)
        for at, (op, number, reverse, engine, _) in enumerate(calls):
            made = tile(*a.shape)
            nisa.tensor_scalar(dst=made, data=held, op0=op, operand0=number, reverse0=reverse, engine=engine)
            nisa.dma_copy(dst=out[at], src=made)
        return out

    np.testing.assert_array_equal(kernel(a), np.stack([expected for *_, expected in calls]))
    trace = from_json(kernel.capture(a).program.text)
    scalars = [one for one in trace.programs[0] if one.operation == "tensor_scalar"]
    engines = [nisa.vector_engine if engine is nisa.unknown_engine else engine for _, _, _, engine, _ in calls]
    assert [one.engine.value for one in scalars] == [engine.name for engine in engines]
    assert [type(one.attributes["reverse0"]) for one in scalars] == [bool] * len(calls)
    assert [one.attributes["op0"] for one in scalars][1:4] == ["add", "subtract", "subtract"]


def test_a_wrong_call_is_refused_behind_right_ones() -> None:
    """An operation and an engine that are none, an operand that is no number, a keyword too many."""

    def body(a: NkiTensor, wrong: dict[str, object]) -> object:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        held = tile(*a.shape)
        nisa.dma_copy(dst=held, src=a)
        given: dict[str, object] = {"dst": held, "data": held, "op0": nl.add, "operand0": 1.0}
        for more in ({}, {}, wrong):
            nisa.tensor_scalar(**{**given, **more})
        nisa.dma_copy(dst=out, src=held)
        return out

    a = np.zeros((2, 8), np.float32)
    nki.jit(body).capture(a, {})
    for wrong, message in (
        ({"op0": "add"}, "is no operation"),
        ({"op0": len}, "no operation 'len'|unknown operation"),
        ({"operand0": "1"}, "expected a tile or a number, got str"),
        ({"engine": 1}, "is no engine"),
        ({"colour": 1}, "unexpected keyword argument"),
    ):
        with pytest.raises(TriptychError, match=message):
            nki.jit(body).capture(a, wrong)
