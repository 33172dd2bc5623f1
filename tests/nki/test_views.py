"""Views of tensors: numpy makes the same ones, and what is written through them is seen by all."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from one_kernel import F32, loaded, random, refused, run, run_kernel, same, tile

from triptych.core.errors import NkiError
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki.tracing.tensors import NkiTensor

U8, U32, BF16 = np.uint8, np.uint32, ml_dtypes.bfloat16
Array = NDArray[np.float32]
DATA = random(16, 2, 3, 4)

Views = tuple[Callable[[NkiTensor], NkiTensor], Callable[[Array], Array]]
VIEWS: list[Views] = [
    (lambda t: t.reshape((16, 24)), lambda a: a.reshape(16, 24)),
    (lambda t: t.reshape_dim(3, (2, -1)), lambda a: a.reshape(16, 2, 3, 2, 2)),
    (lambda t: t.flatten_dims(1, 2), lambda a: a.reshape(16, 6, 4)),
    (lambda t: t.flatten_dims(-2, -1), lambda a: a.reshape(16, 2, 12)),
    (lambda t: t.permute((0, 3, 1, 2)), lambda a: a.transpose(0, 3, 1, 2)),
    (lambda t: t.slice(2, 1, 3), lambda a: a[:, :, 1:3]),
    (lambda t: t.slice(3, 0, 4, 3), lambda a: a[..., 0:4:3]),
    (lambda t: t.select(1, -1), lambda a: a[:, 1]),
    (lambda t: t.select(3, 2).expand_dim(1), lambda a: a[:, np.newaxis, :, :, 2]),
    (lambda t: t.slice(1, 1, 2).squeeze_dim(1), lambda a: a[:, 1]),
    (lambda t: t.slice(1, 0, 1).broadcast(1, 5), lambda a: np.broadcast_to(a[:, :1], (16, 5, 3, 4))),
    (lambda t: t.rearrange(("p", "a", "b", "c"), ("p", ("b", "c"), "a")), lambda a: a.transpose(0, 2, 3, 1).reshape(16, 12, 2)),
    (lambda t: t[:, 1, ..., 2], lambda a: a[:, 1, ..., 2]),
    (lambda t: t.reshape((16, 24)).rearrange(("p", ("h", "w")), ("p", "w", "h"), {"h": 4}),
     lambda a: a.reshape(16, 4, 6).transpose(0, 2, 1)),
    (lambda t: t.ap([[24, 16], [1, 5], [4, 3]], offset=2), lambda a: as_strided(a)),
]  # fmt: skip
# ruff: noqa: E501  # a row a line


def as_strided(a: Array) -> Array:
    flat = a.reshape(16, 24)
    return np.stack([flat[:, 2 + 4 * i : 3 + 4 * i] for i in range(3)], axis=-1)[:, :1] * np.zeros(
        (1, 5, 1), F32
    ) + np.stack([flat[:, 2 + 4 * i : 7 + 4 * i] for i in range(3)], axis=-1)


@pytest.mark.parametrize("at", range(len(VIEWS)))
def test_views_are_numpy_s(at: int) -> None:
    view, expected = VIEWS[at]
    wanted = expected(DATA)

    def body(out: NkiTensor, a: NkiTensor) -> None:
        made = view(a)
        assert made.shape == wanted.shape
        assert [count for _, count in made.get_pattern()] == list(wanted.shape)
        nisa.tensor_copy(out, made)

    same(run(body, [DATA], (wanted.shape, F32))[0], wanted)


def test_views_of_hbm() -> None:
    """In HBM every axis is free: the first may be split, joined and moved."""

    def body(out: NkiTensor, a: NkiTensor) -> None:
        moved = a.reshape_dim(0, (2, 8)).permute((1, 0, 4, 2, 3))
        assert not moved.is_contiguous()
        assert a.is_contiguous()
        nisa.dma_copy(out, moved)

    (found,), _ = run_kernel(body, [DATA], ((8, 2, 4, 2, 3), F32), raw=True)
    same(found, DATA.reshape(2, 8, 2, 3, 4).transpose(1, 0, 4, 2, 3))


def test_what_is_written_through_a_view_is_seen() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.tensor_copy(out.permute((0, 2, 1)), a.reshape((16, 4, 6)))
        nisa.memset(out.reshape((16, 24))[:, 20:24], 7.0)

    (found,), findings = run_kernel(body, [DATA.reshape(16, 24)], ((16, 6, 4), F32))
    expected = DATA.reshape(16, 4, 6).transpose(0, 2, 1).copy()
    expected.reshape(16, 24)[:, 20:] = 7
    same(found, expected)
    assert findings == {}


# Other dtypes of the same bytes


@pytest.mark.parametrize("dtype", [U8, np.uint16, np.int32, BF16, F32])
def test_bytes_as_another_dtype(dtype: type[np.generic]) -> None:
    columns = 24 * 4 // np.dtype(dtype).itemsize

    def body(out: NkiTensor, a: NkiTensor) -> None:
        made = a.view(dtype)
        assert made.shape == (16, columns)
        nisa.tensor_copy(out, made)

    (found,), findings = run_kernel(body, [DATA.reshape(16, 24)], ((16, columns), dtype))
    expected = DATA.reshape(16, 24).view(dtype)
    np.testing.assert_array_equal(found.view(U8), expected.view(U8))
    assert findings == {}


def test_bytes_are_written_as_another_dtype() -> None:
    """float32 from two halves: the upper 16 bits are a bfloat16."""

    def body(out: NkiTensor, a: NkiTensor) -> None:
        halves = out.view(nl.uint16)
        nisa.memset(halves, 0)
        nisa.tensor_copy(out.view(nl.bfloat16)[:, 1:48:2], a)

    a = random(16, 24).astype(BF16)
    (found,), findings = run_kernel(body, [a], ((16, 24), F32))
    same(found, a)
    assert findings == {}


def test_what_is_undefined_is_followed_by_bytes() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        wide = tile(8, 4)
        nisa.memset(wide.view(nl.uint8)[:, 0:6], 0)
        nisa.tensor_copy(out, wide)
        nisa.tensor_copy(out[:, 3:4], a[:, 3:4])

    _, findings = run_kernel(body, [random(8, 4)], ((8, 4), F32))
    assert "16 of 32 elements stored" in findings["initcheck"]


def test_an_access_pattern_of_another_dtype() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.tensor_copy(out, a.ap([[48, 16], [2, 24]], offset=1, dtype=nl.bfloat16))

    a = random(16, 24)
    same(run(body, [a], ((16, 24), BF16))[0], a.view(BF16)[:, 1::2])


def test_hbm_as_another_dtype() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.dma_copy(out, loaded(a.view(nl.uint32)))

    a = random(8, 6)
    (found,), _ = run_kernel(body, [a], ((8, 6), U32), raw=True)
    same(found, a.view(U32))


def test_tfloat32_rounds_to_ten_bits() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        narrow = tile(1, 6, dtype=nl.tfloat32)
        nisa.tensor_copy(narrow, a)
        nisa.tensor_copy(out, narrow)

    a = np.array([[1 + 2.0**-10, 1 + 2.0**-11, 1 + 3 * 2.0**-11, np.inf, np.nan, -(2.0**100) * (1 + 2.0**-12)]], F32)
    expected = np.array([[1 + 2.0**-10, 1, 1 + 2.0**-9, np.inf, np.nan, -(2.0**100)]])
    same(run(body, [a], ((1, 6), F32))[0], expected)


@pytest.mark.parametrize("group", [16, 32])
def test_indirect_columns(group: int) -> None:
    """Each group of 16 partitions (of the Tensor engine 32) has its own offsets."""
    data = random(64, 20)
    offsets = np.random.default_rng(11).integers(0, 20, (64, 2)).astype(U32)
    columns = 2 * group

    def body(out: NkiTensor, a: NkiTensor, index: NkiTensor) -> None:
        chosen = a.indirect(index, columns)
        if group == 16:
            nisa.tensor_copy(out, chosen)
            return
        product = tile(64, columns, buffer=nl.psum)
        nisa.nc_matmul(product, nl.shared_identity_matrix(64, nl.float32), chosen)
        nisa.tensor_copy(out, product)

    (found,) = run(body, [data, offsets], ((64, columns), F32), chip="trn3")
    for partition in range(64):
        first = partition // group * group
        listed = [int(offsets[first + at % group, at // group]) for at in range(columns)]
        same(found[partition], data[partition, listed])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda: tile(16, 24).reshape((8, 48)), "the partition axis of an on-chip tensor must stay"),
        (lambda: tile(16, 24).reshape((16, 23)), "cannot reshape"),
        (lambda: tile(16, 24)[:, 0:24:2].reshape((16, 3, 4)).view(nl.uint8), "cannot be viewed as uint8"),
        (lambda: tile(16, 3, dtype=nl.uint8).view(nl.float32), "no whole number of float32"),
        (lambda: tile(16, 24).reshape_dim(1, (5, 5)), "cannot split axis 1"),
        (lambda: tile(16, 24).reshape_dim(0, (4, 4)), "axis 0 .* walks the partitions"),
        (lambda: tile(16, 4, 6)[:, :, 0:3].flatten_dims(1, 2), "do not lie at equal steps"),
        (lambda: tile(16, 4, 6).permute((1, 0, 2)), "must stay the first"),
        (lambda: tile(16, 24).broadcast(1, 5), "has 24 elements; expected 1"),
        (lambda: tile(16, 24).squeeze_dim(1), "cannot drop axis 1"),
        (lambda: tile(16, 24).expand_dim(0), "cannot put a new axis at 0"),
        (lambda: tile(16, 4, 6).rearrange(("p", "a"), ("a", "p")), "a name or a group of names for each axis"),
        (lambda: tile(16, 24).select(5, 0), "5 is no axis"),
        (lambda: nisa.memset(tile(16, 1)[:, 0:1].broadcast(1, 4), 1.0), "cannot be written"),
        (
            lambda: nisa.tensor_copy(tile(16, 8), tile(16, 24).ap([[8, 16], [1, 8]])),
            "leaves its partitions: partition step 8",
        ),
    ],
)
def test_refused(body: Callable[[], object], message: str) -> None:
    refused(body, NkiError, message)
