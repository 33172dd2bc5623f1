"""What the compiler refuses: each limit with its message, the operand and the author's line."""

from __future__ import annotations

import inspect
import re
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import numpy as np
import pytest

import triptych as tt
from triptych.core.errors import (
    BudgetExceeded,
    NkiError,
    NkiLimitError,
    TriptychError,
    UnknownName,
    UnknownNkiName,
)
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.launching.kernel import Kernel
from triptych.languages.nki.tracing import spinning
from triptych.languages.nki.tracing.tensors import NkiTensor

Body = Callable[[NkiTensor], object]
F32 = nl.float32


def tile(*shape: int, dtype: object = F32, buffer: object = nl.sbuf) -> NkiTensor:
    """`one_kernel.tile` in this file: the line that errors name is to be here."""
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def wrong(value: object) -> Any:  # noqa: ANN401  # what no signature takes
    return value


def psum(*shape: int, dtype: object = F32) -> NkiTensor:
    return tile(*shape, dtype=dtype, buffer=nl.psum)


def trace(body: Body, *, beta1: bool = False, shape: tuple[int, ...] = (300, 2000)) -> None:
    """Traces a kernel whose first argument is an HBM tensor of `shape`; its output is filled first."""

    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((1, 1), dtype=F32, buffer=nl.shared_hbm)
        filled = tile(1, 1)
        nisa.memset(filled, 0.0) if not beta1 else None
        nl.store(out, filled)
        body(a)
        return out

    (nki_beta1.jit if beta1 else nki.jit)(kernel).capture(np.zeros(shape, np.float32))


def full_tile(a: NkiTensor) -> NkiTensor:
    return nl.load(a[0:128, 0:512])


# (name, body, error, what the message must say)
# ruff: noqa: E501  # a row a line
REFUSED: list[tuple[str, Body, type[TriptychError], str]] = [
    ("partitions", lambda a: tile(129, 4), NkiLimitError, "partition dimension 129 of tensor `sbuf.*` .* limit of 128"),
    ("partitions of a load", lambda a: nl.load(a[0:129, :]), NkiLimitError, "partition dimension 129 of tensor `load of a`"),
    ("partitions of psum", lambda a: psum(256, 4), NkiLimitError, "partition dimension 256 .* limit of 128"),
    ("one dimension", lambda a: tile(128), NkiError, "must have at least 2 dimensions"),
    ("one dimension of a load", lambda a: nl.load(a[0, 0:128]), NkiError, "must have at least 2 dimensions"),
    ("sbuf capacity of a tile", lambda a: tile(128, 60000), NkiLimitError, "takes 240000 bytes of each SBUF .* 212984"),
    ("psum capacity of a tile", lambda a: psum(128, 5000), NkiLimitError, "takes 20000 bytes of each PSUM .* 16384"),
    ("out of range", lambda a: nl.load(a[0:128, 1990:2001]), NkiLimitError, r"`a` on dimension 1: index range \[1990, 2000\]"),
    ("out of range by ds", lambda a: nl.load(a[nl.ds(290, 20), :]), NkiLimitError, r"dimension 0: index range \[290, 309\]"),
    ("out of range by a number", lambda a: nl.load(a[300, 0:4]), NkiLimitError, r"dimension 0: index range \[300, 300\]"),
    ("out of range by arange",
     lambda a: nl.load(a[nl.arange(128)[:, None] + 200, nl.arange(4)[None, :]]),
     NkiLimitError, r"dimension 0: index range \[200, 327\] exceed dimension size of 300"),
    ("matmul K", lambda a: nisa.nc_matmul(psum(128, 4), a[0:200, 0:128], tile(128, 4)), NkiError,
     r"stationary must be in \['sbuf'\], got hbm"),
    ("matmul K mismatch", lambda a: nisa.nc_matmul(psum(128, 4), tile(128, 128), tile(64, 4)), NkiError,
     r"contraction dimension mismatch: stationary\[0\]=128 != moving\[0\]=64"),
    ("matmul M", lambda a: nisa.nc_matmul(psum(128, 4), tile(128, 256), tile(128, 4)), NkiLimitError,
     "stationary free dimension 256 .* exceeds gemm_stationary_fmax=128"),
    ("matmul N", lambda a: nisa.nc_matmul(psum(128, 1024), tile(128, 128), tile(128, 1024)), NkiLimitError,
     "moving free dimension 1024 .* exceeds gemm_moving_fmax=512"),
    ("matmul into sbuf", lambda a: nisa.nc_matmul(tile(128, 4), tile(128, 128), tile(128, 4)), NkiError,
     r"dst must be in \['psum'\], got sbuf"),
    ("matmul dst dtype", lambda a: nisa.nc_matmul(psum(128, 4, dtype=nl.bfloat16), tile(128, 128), tile(128, 4)), NkiError,
     "is bfloat16; a matmul's dst must be f32 on trn2"),
    ("matmul pairing", lambda a: nisa.nc_matmul(psum(128, 4), tile(128, 128), tile(128, 4, dtype=nl.bfloat16)), NkiError,
     "float32 must be paired with float32"),
    ("matmul fp8 mix",
     lambda a: nisa.nc_matmul(
         psum(128, 4), tile(128, 128, dtype=nl.float8_e4m3), tile(128, 4, dtype=nl.float8_e4m3fn)),
     NkiError, "cannot be mixed"),
    ("matmul of integers",
     lambda a: nisa.nc_matmul(psum(128, 4), tile(128, 128, dtype=nl.int32), tile(128, 4, dtype=nl.int32)),
     NkiError, "is int32; expected a float"),
    ("matmul dst shape", lambda a: nisa.nc_matmul(psum(64, 4), tile(128, 128), tile(128, 4)), NkiError,
     r"has the shape \[64, 4\]; expected \[128, 4\] \(M, N\)"),
    ("psum bank", lambda a: nisa.nc_matmul(psum(128, 1024)[:, 256:768], tile(128, 128), tile(128, 512)), NkiLimitError,
     "crosses a PSUM bank of 2048 bytes"),
    ("transposition", lambda a: nisa.nc_transpose(psum(128, 128), tile(128, 200)), NkiLimitError, "exceeds 128 x 128"),
    ("transposition by DVE", lambda a: nisa.nc_transpose(tile(64, 32), tile(32, 64)), NkiLimitError, "exceeds 32 x 32"),
    ("transposition dtype", lambda a: nisa.nc_transpose(psum(32, 32), tile(32, 32, dtype=nl.bfloat16)), NkiError,
     "must have one dtype"),
    ("start partition", lambda a: nisa.memset(tile(128, 4)[1:2, :], 0.0), NkiLimitError,
     "invalid access of 1 partitions starting at partition 1"),
    ("start partition of 64", lambda a: nisa.memset(tile(128, 4)[32:96, :], 0.0), NkiLimitError,
     "64 partitions starting at partition 32 .* may start at 0, 64"),
    ("start partition of 65", lambda a: nisa.memset(tile(128, 4)[32:97, :], 0.0), NkiLimitError, "may start at 0$"),
    ("broadcast operand", lambda a: nisa.tensor_tensor(tile(128, 9), tile(128, 9), tile(128, 1), nl.add), NkiError,
     "'dst' free total elements 9 != 'data2' free total elements 1"),
    ("partitions of operands", lambda a: nisa.tensor_tensor(tile(128, 9), tile(128, 9), tile(64, 9), nl.add), NkiError,
     "has 64 partitions, .* has 128"),
    ("two operands in psum", lambda a: nisa.tensor_tensor(tile(8, 8), psum(8, 8), psum(8, 8), nl.add), NkiError,
     "both lie in PSUM"),
    ("gpsimd and psum",
     lambda a: nisa.tensor_tensor(tile(8, 8), psum(8, 8), tile(8, 8), nl.add, engine=nisa.engine.gpsimd),
     NkiError, "lies in PSUM, which the gpsimd engine cannot reach"),
    ("hbm operand", lambda a: nisa.tensor_copy(tile(128, 4), a[0:128, 0:4]), NkiError, r"src must be in .* got hbm"),
    ("hbm operand of nl", lambda a: nl.exp(a), NkiError, "must be in .'sbuf', 'psum'., got private_hbm"),
    ("column dtype",
     lambda a: nisa.tensor_scalar(tile(8, 8), tile(8, 8), nl.add, tile(8, 1, dtype=nl.int32)),
     NkiError, "'operand0' must be float32, got int32"),
    ("column shape", lambda a: nisa.tensor_scalar(tile(8, 8), tile(8, 8), nl.add, tile(8, 2)), NkiError,
     r"has the shape \[8, 2\]; expected \[8, 1\] or a number"),
    ("mixed kinds",
     lambda a: nisa.tensor_scalar(
         tile(8, 8, dtype=nl.int32), tile(8, 8, dtype=nl.int32), nl.bitwise_and, 1, op1=nl.add, operand1=1),
     NkiError, "both must be bit operations or both arithmetic"),
    ("bits of floats", lambda a: nisa.tensor_tensor(tile(8, 8), tile(8, 8), tile(8, 8), nl.bitwise_or), NkiError,
     "works on integers"),
    ("engine without the operation",
     lambda a: nisa.tensor_tensor(tile(8, 8), tile(8, 8), tile(8, 8), nl.power, engine=nisa.engine.vector),
     NkiError, "vector engine has no 'power'; engines that have it: gpsimd"),
    ("wrong engine", lambda a: nisa.tensor_copy(tile(8, 8), tile(8, 8), engine=nisa.engine.tensor), NkiError,
     "the tensor engine does not execute it"),
    ("enum as integer", lambda a: nisa.tensor_copy(tile(8, 8), tile(8, 8), engine=5), NkiError, "engine=5 is no engine"),
    ("reduction of partitions", lambda a: nl.sum(tile(8, 8), axis=0), NkiError, "axis 0 is the partition axis"),
    ("reduction of inner axes", lambda a: nisa.tensor_reduce(tile(8, 8), nl.add, tile(8, 8, 8), axis=1), NkiError,
     "are not the last ones"),
    ("reduction operation", lambda a: nisa.tensor_reduce(tile(8, 1), nl.less, tile(8, 8), axis=1), NkiError,
     "'less' cannot reduce"),
    ("activation reduction",
     lambda a: nisa.activation_reduce(tile(8, 8), nl.exp, tile(8, 8), nl.maximum, tile(8, 1)),
     NkiError, "reduce_op is 'maximum'; the instruction has add"),
    ("dma count", lambda a: nisa.dma_copy(tile(128, 128), a[0:2, 0:2]), NkiError,
     "same number of elements, got src=4, dst=16384"),
    ("dma from psum", lambda a: nl.store(a[0:8, 0:8], psum(8, 8)), NkiError, "cannot be written"),
    ("psum by dma", lambda a: nisa.dma_copy(tile(8, 8), psum(8, 8)), NkiError,
     "requires HBM or SBUF tensors, got src=psum, dst=sbuf"),
    ("input written", lambda a: nl.store(a[0:8, 0:8], tile(8, 8)), NkiError, "tensor `a` cannot be written"),
    ("broadcast view written", lambda a: nisa.memset(tile(8, 1).broadcast_to((8, 4)), 0.0), NkiError, "cannot be written"),
    ("memset of an integer", lambda a: nisa.memset(tile(8, 8, dtype=nl.int32), 0.5), NkiError, "is no int32"),
    ("predicate", lambda a: nisa.tensor_copy_predicated(tile(8, 8), tile(8, 8), tile(8, 8)), NkiError,
     "expected uint8, uint16, uint32 or bool"),
    ("iota count", lambda a: nisa.iota(tile(8, 8), [[1, 9]]), NkiError, "the pattern has 9 elements, .* has 8"),
    ("iota axes", lambda a: nisa.iota(tile(8, 32), [[1, 2]] * 5), NkiLimitError, "5 axes; the limit is 4"),
    ("select into psum", lambda a: nisa.affine_select(psum(8, 8), [[1, 8]], 0, tile(8, 8), 0.0), NkiError,
     r"dst must be in \['sbuf'\], got psum"),
    ("divide", lambda a: nl.divide(tile(8, 8), tile(8, 8)), NkiError, "divide has no hardware instruction"),
    ("mod", lambda a: nl.mod(tile(8, 8), 2), NkiError, "mod has no hardware instruction"),
    ("divide as op", lambda a: nisa.tensor_tensor(tile(8, 8), tile(8, 8), tile(8, 8), nl.divide), NkiError,
     "'divide' has no hardware instruction"),
    ("np.divide as op", lambda a: nisa.tensor_scalar(tile(8, 8), tile(8, 8), np.divide, 2.0), NkiError,
     "'divide' has no hardware instruction"),
    ("operators", lambda a: tile(8, 8) + tile(8, 8), NkiError, "unsupported operand type.* 'NkiTensor' and 'NkiTensor'"),
    ("five axes",
     lambda a: nisa.tensor_copy(tile(2, 32), tile(2, 4, 4, 4, 4, 4)[:, 0:2, 0:2, 0:2, 0:2, 0:2]),
     NkiLimitError, "5 free axes; the limit is 4"),
    ("too many indices", lambda a: a[0, 0, 0], NkiError, "has 2 axes; the index has 3"),
    ("newaxis", lambda a: a[:, None], NkiError, "None makes no new axis"),
    ("list index", lambda a: a[[1, 2], :], NkiError, "list is no index of NKI"),
    ("a list for all indices", lambda a: tile(8, 8)[[2, 3]], NkiError, "a list is no index of NKI"),
    ("a list for an index tile's axes", lambda a: nl.arange(4)[[None]], NkiError, "takes only ':' and None"),
    ("access pattern", lambda a: a.ap(wrong("ab")), NkiError, r"is 'ab'; expected pairs \[step, count\]"),
    ("offset of an access pattern", lambda a: a.ap([[1, 8]], offset=wrong(0.5)), NkiError, "expected whole numbers"),
    ("reshape", lambda a: a.reshape(wrong((8, 7.5))), NkiError, r"the new shape of `a` is \(8, 7.5\); expected whole numbers"),
    ("broadcast", lambda a: a.broadcast_to(wrong(None)), NkiError, "is None; expected whole numbers"),
    ("permute", lambda a: a.permute(wrong("ab")), NkiError, "the order of the axes of `a` is 'ab'"),
    ("a loop's step", lambda a: nl.affine_range(0, 10, 0), NkiError, "the step of a loop is 0"),
    ("arange of a fraction", lambda a: nl.arange(wrong(2.5)), NkiError, "nl.arange is .*; expected whole numbers"),
    ("arange's step", lambda a: nl.arange(0, 8, 0), NkiError, r"nl.arange\(0, 8, 0\) is empty"),
    ("ds", lambda a: nl.ds(0, wrong(2.5)), NkiError, "expected whole numbers"),
    ("program axis by name", lambda a: nl.program_id(wrong("x")), NkiError, "axis 'x' of a grid"),
    ("bare arange", lambda a: nl.load(a[nl.arange(4), nl.arange(4)]), NkiError, "one-dimensional nl.arange"),
    ("mixed indices", lambda a: nl.load(a[nl.arange(4)[:, None], 0:4]), NkiError, "cannot be mixed"),
    ("index modulo", lambda a: nl.arange(4)[:, None] % 2, NkiError, "no division or modulo"),
    ("a comparison in an if", lambda a: 1 if tile(8, 8)[0, 0] > 0 else 0, NkiError,
     "unsupported operand.*\n.*\n.*cannot steer Python's `if`.*: select elements with nl.where"),
    ("an equality in an if", lambda a: 1 if tile(8, 8) == 0 else 0, NkiError, "use nl.equal .*cannot steer"),
    ("range of a tensor", lambda a: range(a), NkiError, r"a number is wanted.*`a`.*\n.*\n.*range\(tensor.shape\[0\]\)"),
    ("float of a tensor", lambda a: float(tile(8, 8)), NkiError, "a number is wanted"),
    ("int of a tensor", lambda a: int(tile(8, 8)), NkiError, "a number is wanted"),
    ("a list for a tensor", lambda a: nl.load([1.0]), NkiError, "a list is no tensor\n.*\n.*pass np.array"),
    ("value of a tensor", lambda a: 1 if tile(8, 8)[0:1, 0:1] else 0, NkiError, "control flow depends on the value"),
    ("numpy of a tensor", lambda a: bool(np.asarray(tile(8, 8)).size), NkiError, "has no values while a kernel is traced"),
    ("loop over a tensor", lambda a: iter(tile(8, 8)), NkiError, "cannot be iterated over"),
    ("float64", lambda a: tile(8, 8, dtype=np.float64), NkiError, "is no dtype of NKI"),
    ("string buffer", lambda a: nl.ndarray((8, 8), F32, buffer="sbuf"), NkiError, "is no memory"),
    ("empty tile", lambda a: tile(8, 0), NkiError, "is empty"),
    ("shape of floats", lambda a: nl.ndarray((8, 4.0), F32), NkiError, "4.0 is no whole number"),
    ("values in hbm", lambda a: nl.zeros((8, 8), F32, buffer=nl.shared_hbm), NkiError, "cannot be created with a value"),
    ("address of one number", lambda a: nl.ndarray((8, 8), F32, address=(0,)), NkiError, r"expected \(partition, byte\)"),
    ("unlike partitions in nl", lambda a: nl.add(tile(8, 8), tile(1, 8)), NkiError, "have 8 and 1 partitions"),
    ("program axis", lambda a: nl.program_id(1), NkiError, "axis 1 of a grid of 1 axes"),
    ("unknown function", lambda a: nl.expp(tile(8, 8)), UnknownNkiName, "did you mean exp"),
    ("missing function", lambda a: nisa.builtin_custom_op, UnknownNkiName, "nki.isa.builtin_custom_op is not implemented"),
    ("unknown instruction", lambda a: nisa.tensor_tensr(tile(8, 8)), UnknownNkiName, "did you mean tensor_tensor"),
    ("unknown attribute", lambda a: a.shap, UnknownNkiName, "did you mean shape"),
    ("unknown argument", lambda a: nisa.tensor_copy(dst=tile(8, 8), source=tile(8, 8)), NkiError,
     "its arguments are dst, src, engine"),
    ("unknown op", lambda a: nisa.tensor_tensor(tile(8, 8), tile(8, 8), tile(8, 8), np.hypot), UnknownName,
     "unknown operation 'hypot'"),
    ("string op", lambda a: nisa.tensor_tensor(tile(8, 8), tile(8, 8), tile(8, 8), "add"), NkiError, "is no operation"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "error", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(body: Body, error: type[TriptychError], message: str) -> None:
    with pytest.raises(error) as caught:
        trace(body)
    text = str(caught.value)
    assert re.search(message, text, re.MULTILINE), text
    assert caught.value.where is not None
    first = inspect.getsourcelines(body)[1]
    assert caught.value.where.file == __file__
    assert caught.value.where.line in range(20, first + 6)


def test_the_line_is_the_author_s() -> None:
    with pytest.raises(NkiLimitError) as caught:
        trace(lambda a: nl.load(a[0:200, :]))
    assert caught.value.where is not None
    assert "nl.load(a[0:200, :])" in caught.value.where.text


def test_live_tiles_beyond_sbuf() -> None:
    def body(a: NkiTensor) -> None:
        tiles = [nl.load(a[0:128, :]) for _ in range(27)]  # 27 x 8000 bytes
        for one in tiles:
            nl.exp(one)

    with pytest.raises(NkiLimitError, match=r"live tiles take 2\d+ bytes of each SBUF partition; the limit is 212984"):
        trace(body)


@pytest.mark.parametrize(("partitions", "fit"), [(128, 4), (65, 4), (64, 8), (33, 8), (32, 16), (1, 16)])
def test_tiles_of_few_partitions_lie_beside_each_other(partitions: int, fit: int) -> None:
    """By quadrants, where compute operands may begin; four tiles of 50 000 bytes in each partition fit."""

    def body(count: int) -> Body:
        def filled(a: NkiTensor) -> None:
            del a
            tiles = [tile(partitions, 12_500) for _ in range(count)]
            for one in tiles:
                nisa.memset(one, 0.0)
            for one in tiles:
                nisa.activation(one, nl.exp, one)

        return filled

    trace(body(fit))
    too_many = fit + fit // 4
    with pytest.raises(NkiLimitError, match=rf"{too_many} live tiles take .* of each SBUF partition"):
        trace(body(too_many))


def test_dead_tiles_do_not_count() -> None:
    def body(a: NkiTensor) -> None:
        for _ in range(60):
            nl.exp(nl.load(a[0:128, :]))

    trace(body)


def test_live_tiles_beyond_psum() -> None:
    def body(a: NkiTensor) -> None:
        weights, data = nl.load(a[0:128, 0:128]), nl.load(a[0:128, 0:512])
        products = [psum(128, 512) for _ in range(9)]
        for one in products:
            nisa.nc_matmul(one, weights, data)
        for one in products:
            nl.copy(one)

    with pytest.raises(NkiLimitError, match="9 live tiles take 18432 bytes of each PSUM partition; the limit is 16384"):
        trace(body)


def test_beta1_reads_psum_by_dma() -> None:
    trace(lambda a: nisa.dma_copy(dst=tile(8, 8), src=psum(8, 8)), beta1=True)


@pytest.mark.parametrize(("target", "limit"), [("trn1", 512), ("trn2", 512), ("trn3", 4096)])
def test_limits_follow_the_target(target: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", target)
    trace(lambda a: nisa.nc_matmul(psum(64, limit), tile(64, 64), tile(64, limit)))
    with pytest.raises(NkiLimitError, match=f"gemm_moving_fmax={limit}"):
        trace(lambda a: nisa.nc_matmul(psum(8, 8), tile(64, 64), tile(64, limit + 1)))


def test_a_scalar_bias_needs_trn2(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(a: NkiTensor) -> object:
        return nisa.activation(tile(8, 8), nl.exp, tile(8, 8), bias=1.0)

    trace(body)
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "inf2")
    with pytest.raises(NkiError, match=r"the bias 1.0 is a number; inf2 takes a \[P, 1\] tile"):
        trace(body)


def test_matmul_contraction_beyond_128_partitions() -> None:
    """A tile of 129 partitions cannot be made; K of 128 is the most."""
    with pytest.raises(NkiLimitError, match="partition dimension 200"):
        trace(lambda a: nisa.nc_matmul(psum(8, 8), tile(200, 8), tile(200, 8)))


@pytest.mark.parametrize("decorate", [nki.jit, nki_beta1.jit])
def test_a_list_for_an_array_is_named(decorate: Callable[[Body], Kernel]) -> None:
    def double(a: NkiTensor) -> NkiTensor:
        return nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)

    with pytest.raises(NkiError, match=r"argument `a` of double is a list, which has no `shape`") as caught:
        decorate(double)([1.0, 2.0])
    assert caught.value.where is not None
    assert caught.value.where.line == inspect.getsourcelines(double)[1] + 1
    assert caught.value.hint is not None
    assert "np.array" in caught.value.hint


def test_an_attribute_error_of_the_authors_own_stays() -> None:
    def wrong(a: NkiTensor) -> NkiTensor:
        return object().shape  # type: ignore[attr-defined]

    with pytest.raises(AttributeError, match="'object' object has no attribute 'shape'"):
        nki.jit(wrong)(np.ones((8, 8), np.float32))


def test_a_loop_that_never_ends_is_stopped() -> None:
    def endless(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        while True:
            nl.store(out, nl.load(a))

    def allocating(a: NkiTensor) -> NkiTensor:
        while True:
            nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.sbuf)

    for body in (endless, allocating):
        with tt.profile() as profile, tt.scope(trace_limit=100), pytest.raises(BudgetExceeded) as caught:
            nki.jit(body)(np.ones((8, 8), np.float32))
        (stopped,) = profile.launches
        assert (stopped.kernel, stopped.language, stopped.stopped) == (body.__name__, "nki", True)
        (finding,) = stopped.findings
        assert (finding.check, finding.message, finding.where) == ("budget", caught.value.message, caught.value.where)
        assert caught.value.kernel == body.__name__
        message = f"kernel {body.__name__}: its trace has more than 100 instructions and tensors"
        assert caught.value.message == message
        assert caught.value.where is not None
        assert caught.value.where.line in range(inspect.getsourcelines(body)[1], inspect.getsourcelines(body)[1] + 4)
        assert caught.value.hint == "does a loop of it ever end? TRIPTYCH_TRACE_LIMIT raises the limit"
    with tt.scope(trace_limit=5):  # three tensors, two instructions
        nki.jit(_copy)(np.ones((8, 8), np.float32))


def _copy(a: NkiTensor) -> NkiTensor:
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out


@pytest.mark.parametrize("in_another_thread", [False, True])
def test_python_that_spins_without_an_instruction_is_stopped(in_another_thread: bool) -> None:
    def spin(a: NkiTensor) -> NkiTensor:
        while True:
            pass

    def swallow(a: NkiTensor) -> NkiTensor:
        while True:
            try:
                nl.par_dim(3)  # the language's own code, which records nothing
            except Exception:
                continue

    def refused(body: Callable[..., object]) -> BudgetExceeded:
        with tt.profile() as profile, tt.scope(budget=1), pytest.raises(BudgetExceeded) as caught:
            nki.jit(body)(np.ones((8, 8), np.float32))
        assert [one.stopped for one in profile.launches] == [True]
        return caught.value

    for body in (spin, swallow):
        if in_another_thread:
            with ThreadPoolExecutor(1) as pool:
                error = pool.submit(refused, body).result()
        else:
            error = refused(body)
        said = f"kernel {body.__name__}: it ran for 0.5 s without an instruction or a tensor and was stopped"
        assert error.message == said
        lines, first = inspect.getsourcelines(body)
        assert error.where is not None
        assert error.where.file == __file__
        assert error.where.line in range(first + 1, first + len(lines))
        assert error.hint is not None
        assert "TRIPTYCH_BUDGET" in error.hint
    nki.jit(_copy)(np.ones((8, 8), np.float32))  # what comes after is not stopped
    _go_on_under_a_profile()


def _go_on_under_a_profile() -> None:
    """CPython 3.11 never comes to a function's first line where it takes an exception for one that is still to come."""

    def late(*_: object) -> None:
        raise TimeoutError

    def nothing() -> None:
        pass

    def ignore(frame: FrameType, event: str, argument: object) -> None:
        pass

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(5)
    sys.setprofile(ignore)
    try:
        nothing()
    finally:
        sys.setprofile(None)
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_python_that_sleeps_is_not_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is the thread's own time on a processor."""
    monkeypatch.setattr(spinning, "_LEAST_S", 0.0)
    with tt.scope(budget=100_000):

        @nki.jit
        def kernel(a: NkiTensor) -> NkiTensor:
            time.sleep(0.3)
            return _copy(a)

        kernel(np.ones((8, 8), np.float32))
