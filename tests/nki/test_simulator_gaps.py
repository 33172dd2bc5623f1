"""What AWS's simulator computes and its compiler refuses: each class of such kernels with one of ours, refused here.

Measured by yahavb/trainium-agent-labs with NKI 0.6.0 (`gate_nki.py`, `analysis/seat115_chip_and_l1rule.md`): of 39
distinct kernels that passed AWS's simulator 4 were built for trn2, and ran. 34 of the 35 others, which are kernels and
no classes, used `nl.divide` or `nisa.tensor_tensor` with an operand of one element a partition; of 17 kernels of
another task 6 gave an instruction one partition that is not the first, 3 had a `dst` of more elements than the result.
The rest are limits that AWS's documents name: the known issues of NKI 0.3 and 0.4, which hold to 0.6, and the
limitations of its simulator. `KINDS` says which are which, and how many classes of each there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from one_kernel import F32, Array, accepted, filled, random, refused, run_kernel, same, tile

from triptych.core.errors import NkiError, NkiLimitError, TriptychError
from triptych.core.settings import scope
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki
from triptych.languages.nki.tracing.tensors import NkiTensor

Body = Callable[[], object]

KINDS = {
    "division": (13, "the first of the two forms of the 34 kernels; NKI 0.4's known issues"),
    "broadcast": (11, "the second form; NKI 0.4's known issues"),
    "partition": (6, "6 of 17 kernels; a kernel of each row copied apart"),
    "size": (7, "3 of 17 kernels: dst has more elements than the result"),
    "capacity": (7, "limitations of AWS's simulator: it places nothing, and looks at copies alone"),
    "front end": (5, "AWS's changes in NKI 0.3: the simulator runs any Python"),
}
"""How many classes of each kind there are, and where they come from."""


def psum(*shape: int) -> NkiTensor:
    return tile(*shape, buffer=nl.psum)


def wrong(value: object) -> Any:  # noqa: ANN401  # what no signature takes
    return value


def one() -> NkiTensor:
    """A tile of 8 partitions of 8 elements."""
    return filled(8, 8)


def column() -> NkiTensor:
    """A tile of one element a partition."""
    return filled(8, 1)


def rows(body: Callable[[NkiTensor, int], object]) -> None:
    """What a loop over channels does: a row after the other of a tile."""
    for row in range(8):
        body(filled(8, 16), row)


def all_in_use(count: int, make: Callable[[], NkiTensor]) -> None:
    """So many tiles at a time."""
    tiles = [make() for _ in range(count)]
    for made in tiles:
        nisa.tensor_copy(tile(made.shape[0], 1), made[:, 0:1])


def banks(count: int) -> None:
    """So many products at a time, a bank of PSUM each."""
    products = [psum(128, 512) for _ in range(count)]
    for product in products:
        nisa.nc_matmul(product, filled(128, 128), filled(128, 512))
    for product in products:
        nisa.tensor_copy(tile(128, 512), product)


def overlapping() -> None:
    first, second = (nl.ndarray((8, 64), nl.float32, address=(0, byte)) for byte in (0, 128))
    nisa.memset(first, 1.0)
    nisa.memset(second, 2.0)
    nisa.tensor_copy(second, first)


DIVISION = "has no hardware instruction"
ONE = "free total elements 8 != '{}' free total elements 1"
START = "invalid access of 1 partitions starting at partition 1"

# (kind, class, our kernel, the nearest that the compiler takes, error, message)
CLASSES: list[tuple[str, str, Body, Body | None, type[TriptychError], str]] = [
    ("division", "a number by a tile", lambda: nl.divide(1.0, one()), lambda: nl.reciprocal(one()), NkiError, DIVISION),
    ("division", "a tile by a number", lambda: nl.divide(one(), 2.0), lambda: nl.multiply(one(), 0.5), NkiError, DIVISION),
    ("division", "two tiles", lambda: nl.divide(one(), one()), lambda: nl.multiply(one(), nl.reciprocal(one())), NkiError, DIVISION),
    ("division", "a tile by a column", lambda: nl.divide(one(), column()),
     lambda: nisa.tensor_scalar(tile(8, 8), one(), nl.multiply, nl.reciprocal(column())), NkiError, DIVISION),
    ("division", "tensor_tensor", lambda: nisa.tensor_tensor(tile(8, 8), one(), one(), op=nl.divide),
     lambda: nisa.tensor_tensor(tile(8, 8), one(), one(), op=nl.multiply), NkiError, DIVISION),
    ("division", "tensor_scalar by a number", lambda: nisa.tensor_scalar(tile(8, 8), one(), nl.divide, 9.0),
     lambda: nisa.tensor_scalar(tile(8, 8), one(), nl.multiply, 1 / 9), NkiError, DIVISION),
    ("division", "tensor_scalar by a column", lambda: nisa.tensor_scalar(tile(8, 8), one(), nl.divide, column()), None, NkiError, DIVISION),
    ("division", "the second operation", lambda: nisa.tensor_scalar(tile(8, 8), one(), nl.add, 1.0, op1=nl.divide, operand1=2.0),
     lambda: nisa.tensor_scalar(tile(8, 8), one(), nl.add, 1.0, op1=nl.multiply, operand1=0.5), NkiError, DIVISION),
    ("division", "scalar_tensor_tensor", lambda: nisa.scalar_tensor_tensor(tile(8, 8), one(), nl.add, 1.0, nl.divide, one()), None, NkiError, DIVISION),
    ("division", "tensor_tensor_scan", lambda: nisa.tensor_tensor_scan(tile(8, 8), one(), one(), 0.0, nl.divide, nl.add), None, NkiError, DIVISION),
    ("division", "nl.mod", lambda: nl.mod(one(), 3.0), lambda: nl.floor(one()), NkiError, DIVISION),
    ("division", "nl.fmod", lambda: nl.fmod(one(), one()), lambda: nl.trunc(one()), NkiError, DIVISION),
    ("division", "mod as an operation", lambda: nisa.tensor_scalar(tile(8, 8), one(), nl.mod, 3.0), None, NkiError, DIVISION),
    ("broadcast", "data2 of tensor_tensor", lambda: nisa.tensor_tensor(tile(8, 8), one(), column(), op=nl.add),
     lambda: nisa.tensor_scalar(tile(8, 8), one(), nl.add, column()), NkiError, ONE.format("data2")),
    ("broadcast", "data1 of tensor_tensor", lambda: nisa.tensor_tensor(tile(8, 8), column(), one(), op=nl.subtract),
     lambda: nisa.tensor_scalar(tile(8, 8), one(), nl.subtract, column(), reverse0=True), NkiError, ONE.format("data1")),
    ("broadcast", "both of tensor_tensor", lambda: nisa.tensor_tensor(tile(8, 8), column(), column(), op=nl.add),
     lambda: nisa.tensor_tensor(tile(8, 1), column(), column(), op=nl.add), NkiError, ONE.format("data1")),
    ("broadcast", "operand1 of scalar_tensor_tensor", lambda: nisa.scalar_tensor_tensor(tile(8, 8), one(), nl.add, 1.0, nl.multiply, column()),
     lambda: nisa.scalar_tensor_tensor(tile(8, 8), one(), nl.add, column(), nl.multiply, one()), NkiError, ONE.format("operand1")),
    ("broadcast", "data1 of a scan", lambda: nisa.tensor_tensor_scan(tile(8, 8), one(), column(), 0.0, nl.multiply, nl.add), None, NkiError, ONE.format("data1")),
    ("broadcast", "a predicate", lambda: nisa.tensor_copy_predicated(tile(8, 8), one(), filled(8, 1, dtype=nl.uint8)),
     lambda: nisa.tensor_copy_predicated(tile(8, 8), one(), filled(8, 8, dtype=nl.uint8)), NkiError, ONE.format("predicate")),
    ("broadcast", "a column of nl.add", lambda: nl.add(one(), column()),
     lambda: nl.add(one(), nl.broadcast_to(column(), (8, 8))), NkiError, ONE.format("rhs")),
    ("broadcast", "a column in front of nl.maximum", lambda: nl.maximum(column(), one()), lambda: nl.maximum(one(), one()), NkiError, ONE.format("lhs")),
    ("broadcast", "an inner axis of nl.multiply", lambda: nl.multiply(filled(8, 3, 4), filled(8, 3, 1)),
     lambda: nl.multiply(filled(8, 3, 4), filled(8, 3, 1).broadcast(2, 4)), NkiError, "free total elements 12 != 'rhs' free total elements 3"),
    ("broadcast", "a number as an exponent of nl.power", lambda: nl.power(one(), 2.0), lambda: nl.power(one(), filled(8, 8, value=2.0)), NkiError, "takes no number for an exponent"),
    ("broadcast", "over partitions", lambda: nisa.tensor_copy(tile(128, 8), filled(1, 8)), lambda: nl.broadcast_to(filled(1, 8), (128, 8)), NkiError,
     "1 partitions, .* has 128"),
    ("partition", "data of a reduction, t[c]", lambda: rows(lambda t, c: nl.sum(t[c], axis=1)), lambda: nl.sum(filled(8, 16), axis=1), NkiLimitError, START),
    ("partition", "data of a reduction, t[c:c+1]", lambda: rows(lambda t, c: nisa.tensor_reduce(tile(1, 1), nl.add, t[c : c + 1], axis=1)), None, NkiLimitError, START),
    ("partition", "dst of a copy", lambda: rows(lambda t, c: nisa.tensor_copy(t[c : c + 1, 0:8], filled(1, 8))),
     lambda: rows(lambda t, c: nisa.dma_copy(t[c : c + 1, 0:8], filled(1, 8))), NkiLimitError, START),
    ("partition", "src of a copy, a row after the other", lambda: rows(lambda t, c: nisa.tensor_copy(tile(1, 16), t[c : c + 1])), None, NkiLimitError, START),
    ("partition", "dst of memset", lambda: rows(lambda t, c: nisa.memset(t[c], 0.0)), lambda: nisa.memset(filled(64, 8)[32:33], 0.0), NkiLimitError, START),
    ("partition", "an operand of a product", lambda: nisa.nc_matmul(psum(1, 8), filled(8, 1)[1:2], filled(8, 8)[1:2]), None, NkiLimitError, START),
    ("size", "dst of tensor_scalar", lambda: nisa.tensor_scalar(tile(8, 3, 3), filled(8, 1, 1), nl.multiply, 0.25),
     lambda: nisa.tensor_scalar(tile(8, 1, 1), filled(8, 1, 1), nl.multiply, 0.25), NkiError, "'dst' free total elements 9 != 'data' free total elements 1"),
    ("size", "dst of tensor_reduce", lambda: nisa.tensor_reduce(tile(8, 4), nl.add, filled(8, 4, 4), axis=(1, 2)),
     lambda: nisa.tensor_reduce(tile(8, 1), nl.add, filled(8, 4, 4), axis=(1, 2)), NkiError, "4 elements a partition; expected 1"),
    ("size", "dst of activation", lambda: nisa.activation(tile(8, 9), nl.exp, column()), lambda: nisa.activation(tile(8, 1), nl.exp, column()), NkiError,
     "'dst' free total elements 9 != 'data' free total elements 1"),
    ("size", "dst of tensor_copy", lambda: nisa.tensor_copy(tile(8, 9), column()), lambda: nisa.tensor_copy(tile(8, 1), column()), NkiError,
     "'dst' free total elements 9 != 'src' free total elements 1"),
    ("size", "dst of reciprocal", lambda: nisa.reciprocal(tile(8, 9), column()), lambda: nisa.reciprocal(tile(8, 1), column()), NkiError,
     "'dst' free total elements 9 != 'data' free total elements 1"),
    ("size", "dst of a product", lambda: nisa.nc_matmul(psum(128, 512), filled(128, 128), filled(128, 256)),
     lambda: nisa.nc_matmul(psum(128, 256), filled(128, 128), filled(128, 256)), NkiError, r"\[128, 512\]; expected \[128, 256\]"),
    ("size", "dst of a product hides a wide moving", lambda: nisa.nc_matmul(psum(128, 512), filled(128, 128), filled(128, 1024)), None, NkiError,
     "moving free dimension 1024 .* gemm_moving_fmax=512"),
    ("capacity", "256 partitions of SBUF", lambda: tile(256, 8), lambda: tile(128, 16), NkiLimitError, "partition dimension 256 .* limit of 128"),
    ("capacity", "256 partitions of PSUM", lambda: psum(256, 8), lambda: psum(128, 16), NkiLimitError, "partition dimension 256 .* limit of 128"),
    ("capacity", "a tile larger than SBUF", lambda: tile(128, 60000), lambda: tile(128, 50000), NkiLimitError, "240000 bytes .* 212984"),
    ("capacity", "tiles larger than SBUF together", lambda: all_in_use(7, lambda: filled(128, 8192)), lambda: all_in_use(6, lambda: filled(128, 8192)),
     NkiLimitError, "live tiles take .* bytes of each SBUF partition"),
    ("capacity", "nine banks of PSUM", lambda: banks(9), lambda: banks(8), NkiLimitError, "18432 bytes of each PSUM partition"),
    ("capacity", "a product across banks", lambda: nisa.nc_matmul(psum(128, 1024)[:, 256:768], filled(128, 128), filled(128, 512)), None, NkiLimitError,
     "crosses a PSUM bank"),
    ("capacity", "addresses that overlap", overlapping, None, NkiLimitError, "is placed over"),
    ("front end", "the number of an engine", lambda: nisa.memset(one(), 1.0, engine=wrong(5)), None, NkiError, "engine=5 is no engine"),
    ("front end", "the name of a memory", lambda: nl.ndarray((8, 8), nl.float32, wrong("sbuf")), None, NkiError, "is no memory"),
]  # fmt: skip
# ruff: noqa: E501  # a row a line


@pytest.mark.parametrize(
    ("body", "near", "error", "message"), [row[2:] for row in CLASSES], ids=[f"{row[0]}: {row[1]}" for row in CLASSES]
)
def test_refused_beside_what_is_accepted(
    body: Body, near: Body | None, error: type[TriptychError], message: str
) -> None:
    refused(body, error, message)
    if near is not None:
        accepted(near)


def keyword_only(a: NkiTensor, *, factor: float = 2.0) -> NkiTensor:
    return scaled(a, factor)


def listed(a: NkiTensor, factors: object) -> NkiTensor:
    del factors
    return scaled(a, 2.0)


def kept_on_chip(a: NkiTensor) -> NkiTensor:
    held = tile(8, 6)
    nisa.dma_copy(held, a)
    return held


def scaled(a: NkiTensor, factor: float) -> NkiTensor:
    out = nl.ndarray((8, 6), dtype=a.dtype, buffer=nl.shared_hbm)
    held = kept_on_chip(a)
    nisa.tensor_scalar(held, held, nl.multiply, factor)
    nisa.dma_copy(out, held)
    return out


KERNELS: list[tuple[str, Callable[..., object], tuple[object, ...], str]] = [
    ("a keyword-only argument", keyword_only, (), "has the keyword-only argument `factor`"),
    ("a list for an argument", listed, ([1, 2],), "is given a list for `factors`"),
    ("a result that stays on the chip", kept_on_chip, (), "which lies in sbuf"),
]


@pytest.mark.parametrize(("kernel", "others", "message"), [row[1:] for row in KERNELS], ids=[row[0] for row in KERNELS])
def test_kernels_that_the_front_end_refuses(
    kernel: Callable[..., object], others: tuple[object, ...], message: str
) -> None:
    with pytest.raises(NkiError, match=message):
        nki.jit(kernel).capture(random(8, 6), *others)


def test_every_class_is_in_the_table() -> None:
    """The counts that the documents quote: nobody has to count again."""
    counted = Counter([row[0] for row in CLASSES] + ["front end"] * len(KERNELS))
    assert counted == {kind: count for kind, (count, _) in KINDS.items()}
    names = [row[:2] for row in CLASSES]
    assert len(set(names)) == len(names)


LENIENT: list[tuple[Callable[[NkiTensor], NkiTensor], Callable[[Array], Array], str]] = [
    (lambda a: nl.add(a, a[:, 0:1]), lambda a: a + a[:, :1], ONE.replace("8", "6").format("rhs")),
    (lambda a: nl.maximum(a[:, 0:1], a), lambda a: np.maximum(a, a[:, :1]), ONE.replace("8", "6").format("lhs")),
    (lambda a: nl.power(a, 2.0), lambda a: a * a, "takes no number for an exponent"),
]


@pytest.mark.parametrize(("function", "expected", "message"), LENIENT)
def test_lenient(function: Callable[[NkiTensor], NkiTensor], expected: Callable[[Array], Array], message: str) -> None:
    """Where it is asked for, what the simulator computes is computed, and told."""

    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.tensor_copy(out, function(a))

    a = random(8, 6)
    with scope(nki_lenient=True):
        (found,), findings = run_kernel(body, [a], ((8, 6), F32))
    same(found, expected(a).astype(F32))
    assert message in findings["nki.compiler"]
