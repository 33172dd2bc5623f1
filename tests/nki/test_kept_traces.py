"""Traces of earlier calls: taken where the author's Python must make the same again, and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import triptych as tt
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki
from triptych.languages.nki.launching import kept_traces
from triptych.languages.nki.launching.purity import dependences
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import Tracer

FACTOR = 2.0
TABLE = [3.0]
BOX = SimpleNamespace(factor=3.0)
count = 0


def doubled(value: float) -> float:
    return 2.0 * value


def five_times(value: float) -> float:
    return 5.0 * value


def seven(value: float) -> float:
    del value
    return 7.0


def scaled(x: NkiTensor, factor: float = FACTOR) -> NkiTensor:
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)
    nisa.dma_copy(dst=out, src=tile)
    return out


def by_argument(x: NkiTensor, factor: float = FACTOR) -> NkiTensor:
    return scaled(x, factor)


def by_global(x: NkiTensor) -> NkiTensor:
    return scaled(x, FACTOR)


def by_function(x: NkiTensor) -> NkiTensor:
    return scaled(x, doubled(math.sqrt(4.0)))


def by_list(x: NkiTensor) -> NkiTensor:
    return scaled(x, TABLE[0])


def by_attribute(x: NkiTensor) -> NkiTensor:
    return scaled(x, BOX.factor)


def by_counting(x: NkiTensor) -> NkiTensor:
    global count
    count += 1
    return scaled(x, float(count))


def by_import(x: NkiTensor) -> NkiTensor:
    from random import random  # noqa: PLC0415  # what the test is about

    return scaled(x, random())


def by_printing(x: NkiTensor) -> NkiTensor:
    print("traced")
    return scaled(x)


def by_function_attribute(x: NkiTensor) -> NkiTensor:
    by_function_attribute.calls = 1  # type: ignore[attr-defined]  # a function has what is put there
    return scaled(x)


def by_dunder(x: NkiTensor) -> NkiTensor:
    return scaled(x, float(scaled.__code__.co_argcount))


def by_table(x: NkiTensor, factors: list[float] = TABLE) -> NkiTensor:
    return scaled(x, factors[0])


def by_default(x: NkiTensor) -> NkiTensor:
    return by_table(x)


X = np.arange(24, dtype=np.float32).reshape(4, 6)
Kernel = Callable[..., NDArray[np.float32]]


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that were traced, in their order; no trace is kept from before."""
    found: list[str] = []
    original = Tracer.finish

    def finish(self: Tracer, *given: Any) -> object:  # noqa: ANN401  # handed on
        found.append(self.kernel)
        return original(self, *given)

    monkeypatch.setattr(Tracer, "finish", finish)
    monkeypatch.setattr(kept_traces, "_KEPT", {})
    return found


def _kernel(function: Callable[..., object]) -> Kernel:
    return nki.jit(function)


def _closure(factor: object) -> Callable[[NkiTensor], NkiTensor]:
    def kernel(x: NkiTensor) -> NkiTensor:
        return scaled(x, factor if isinstance(factor, float) else 1.0)

    return kernel


def _counter() -> Callable[[NkiTensor], NkiTensor]:
    count = 0.0

    def kernel(x: NkiTensor) -> NkiTensor:
        nonlocal count
        count += 1.0
        return scaled(x, count)

    return kernel


@pytest.mark.parametrize("function", [by_argument, by_global, by_function, _closure(3.0)])
def test_pure_kernels_are_traced_once(function: Callable[..., object], traced: list[str]) -> None:
    """And run on the arrays of each call, whose results are new arrays."""
    kernel = _kernel(function)
    first, second = kernel(X), kernel(X + 1)
    assert len(traced) == 1
    np.testing.assert_array_equal(first * (X + 1), second * X)
    assert first[0, 1] != 0
    assert not np.shares_memory(first, second)


OTHERS = [
    by_list, by_attribute, by_counting, by_import, by_printing, by_function_attribute, by_dunder, by_default,
    _closure([3.0]), _counter(),
]  # fmt: skip


@pytest.mark.parametrize("function", OTHERS)
def test_others_are_traced_in_each_call(
    function: Callable[..., object], traced: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What they read may change, or what they leave behind is somebody's."""
    kernel = _kernel(function)
    kernel(X)
    kernel(X)
    assert len(traced) == 2
    assert capsys.readouterr().out.count("traced") in (0, 2)


def test_what_is_read_elsewhere_is_read_anew() -> None:
    """A list of the author's that changes, and a count that goes on."""
    kernel, counting = _kernel(by_list), _kernel(_counter())
    TABLE[0] = 3.0
    np.testing.assert_array_equal(kernel(X), 3 * X)
    TABLE[0] = 5.0
    np.testing.assert_array_equal(kernel(X), 5 * X)
    for times in (1, 2, 3):
        np.testing.assert_array_equal(counting(X), times * X)


def test_a_global_that_is_set_anew(monkeypatch: pytest.MonkeyPatch, traced: list[str]) -> None:
    """A number, a function that is called, its code, a builtin's name, a function of the language."""
    kernel = _kernel(by_global)
    np.testing.assert_array_equal(kernel(X), 2 * X)
    monkeypatch.setitem(by_global.__globals__, "FACTOR", 4.0)
    np.testing.assert_array_equal(kernel(X), 4 * X)
    calling = _kernel(by_function)
    np.testing.assert_array_equal(calling(X), 4 * X)
    monkeypatch.setattr(doubled, "__code__", five_times.__code__)
    np.testing.assert_array_equal(calling(X), 10 * X)
    monkeypatch.setitem(by_function.__globals__, "doubled", seven)
    np.testing.assert_array_equal(calling(X), 7 * X)
    assert len(traced) == 5
    monkeypatch.setattr(nl, "multiply", nl.add)
    np.testing.assert_array_equal(kernel(X), X + 4)


@pytest.mark.parametrize("other", [3, 3.5, -0.0, True, np.float32(3.0)])
def test_arguments_are_told_apart(other: float, traced: list[str]) -> None:
    """By their types and the sign of a zero too."""
    kernel = _kernel(by_argument)
    np.testing.assert_array_equal(kernel(X, 3.0), 3 * X)
    np.testing.assert_array_equal(kernel(X, other), np.float32(other) * X)
    np.testing.assert_array_equal(kernel(X, 3.0), 3 * X)
    assert len(traced) == 2


def test_arrays_are_told_apart(traced: list[str]) -> None:
    """By their shapes and dtypes, not by where they lie."""
    kernel = _kernel(by_argument)
    for array in (X, X.copy(), X[:2], X.reshape(6, 4), X.astype(np.float16)):
        np.testing.assert_array_equal(kernel(array), 2 * array)
    assert len(traced) == 4


def test_settings_targets_and_errors(traced: list[str]) -> None:
    """All that decides what is refused counts; a call that is refused leaves nothing."""
    kernel = _kernel(by_argument)
    for target in ("trn1", "trn2", "trn1"):
        with tt.profile(chip=target):
            kernel(X)
    assert len(traced) == 2
    with tt.scope(nki_lenient=True):
        kernel(X)
    with tt.scope(nki_keep_traces=False):
        kernel(X)
    assert len(traced) == 4
    for _ in range(2):
        with pytest.raises(tt.NkiError, match="128"):
            kernel(np.zeros((200, 4), np.float32))


def test_kept_traces_are_bounded(monkeypatch: pytest.MonkeyPatch, traced: list[str]) -> None:
    """The first goes first; a trace of much text is not kept."""
    monkeypatch.setattr(kept_traces, "_MOST", 2)
    kernel = _kernel(by_argument)
    for factor in (1.0, 2.0, 3.0, 1.0, 3.0):
        kernel(X, factor)
    assert len(traced) == 4
    monkeypatch.setattr(kept_traces, "_MOST_TEXT", 100)
    kernel(X, 9.0)
    kernel(X, 9.0)
    assert len(traced) == 6


def test_only_plain_functions_are_pure() -> None:
    """Methods, callable objects, functions with attributes or with keyword-only defaults are not looked into."""
    assert dependences(by_function) is not None
    assert dependences(print) is None
    assert dependences(X.sum) is None
    copied = FunctionType(scaled.__code__, scaled.__globals__, "copied", scaled.__defaults__)
    assert dependences(copied) is not None
    copied.__kwdefaults__ = {"factor": 1.0}
    assert dependences(copied) is None


def test_modules_that_name_each_other(monkeypatch: pytest.MonkeyPatch, traced: list[str]) -> None:
    """Are looked into once; a callable object that has no hash is traced in each call."""
    monkeypatch.setattr(nl, "nisa", nisa, raising=False)
    monkeypatch.setattr(nisa, "nl", nl, raising=False)
    kernel = _kernel(scaled)
    kernel(X)
    kernel(X)
    assert len(traced) == 1

    class Unhashable:
        __hash__ = None  # type: ignore[assignment]  # what the test is about

        def __call__(self, x: NkiTensor) -> NkiTensor:
            return scaled(x, 3.0)

    other = _kernel(Unhashable())
    np.testing.assert_array_equal(other(X), 3 * X)
    np.testing.assert_array_equal(other(X), 3 * X)
    assert len(traced) == 3
