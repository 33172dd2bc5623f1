"""What the kernels of AWS's library rely on: classes of their own, arguments that may be missing, parts of kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest
from one_kernel import F32, Array, filled, loaded, random, refused, run, run_kernel, same, tile

import triptych as tt
from triptych.core.errors import NkiError
from triptych.execution.memory import memory
from triptych.execution.run import run_plan_here
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.tracing.tensors import NkiTensor


class Plain(nl.NKIObject):
    rows: int
    scale: float = 2.0
    name = "plain"


class Derived(Plain):
    columns: int

    def __post_init__(self) -> None:
        self.size = self.rows * self.columns


@dataclass
class Decorated(nl.NKIObject):
    rows: int
    offset = None
    found: list[int] = field(default_factory=list[int])

    @property
    def twice(self) -> int:
        return 2 * self.rows


class Own(nl.NKIObject):
    rows: int

    def __init__(self, count: int) -> None:
        self.rows = count + 1


def test_fields_of_a_class_without_a_decorator() -> None:
    assert vars(Plain(3)) == {"rows": 3, "scale": 2.0, "name": "plain"}
    assert vars(Plain(scale=1.0, name="other")) == {"rows": None, "scale": 1.0, "name": "other"}
    assert vars(Derived(3, 1.0, "x", 4)) == {"rows": 3, "scale": 1.0, "name": "x", "columns": 4, "size": 12}
    with pytest.raises(TypeError, match="Plain: no field for width; its fields: rows, scale, name"):
        Plain(3, width=4)
    with pytest.raises(TypeError, match="Plain: no field for rows"):
        Plain(3, rows=4)
    assert Own(3).rows == 4


def test_fields_of_a_data_class() -> None:
    made = Decorated(rows=3, offset=5)  # type: ignore[call-arg]  # no annotation: a field of NKI all the same
    assert (made.rows, made.offset, made.found, made.twice) == (3, 5, [], 6)
    first, second = Decorated(), Decorated()  # type: ignore[call-arg]  # a field of NKI has a default
    assert first.rows is None
    assert first.found is not second.found


@nki.jit(mode="trace")
def part(out: NkiTensor, a: NkiTensor, how: Plain) -> None:
    moved = loaded(a)
    nisa.tensor_scalar(moved, moved, nl.multiply, how.scale)
    nisa.dma_copy(out, moved)


@nki.jit(mode="auto", debug_kernel=True, show_compiler_tb=True, experimental_flags="skip-some-check")
def whole(a: NkiTensor, how: Plain) -> NkiTensor:
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    part(out, a, how)
    return out


def test_a_kernel_for_other_kernels() -> None:
    a = random(8, 8)
    with tt.profile(chip="trn2"):
        same(whole(a, Plain(8, 3.0)), 3 * a)


def test_options_that_no_release_had() -> None:
    with pytest.raises(NkiError, match=r"nki.jit does not take fast_math"):
        nki.jit(fast_math=True)


def optional(a: NkiTensor, bias: NkiTensor | None = None) -> NkiTensor:
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    total = loaded(a)
    if bias:
        nisa.tensor_tensor(total, total, loaded(bias), nl.add)
    nisa.dma_copy(out, total)
    return out


def test_the_truth_of_an_argument_is_whether_there_is_one() -> None:
    a, bias = random(8, 8), random(8, 8, seed=1)
    with tt.profile(chip="trn2"):
        same(nki.jit(optional)(a), a)
        same(nki.jit(optional)(a, bias), a + bias)
        with pytest.raises(NkiError, match="control flow depends on the value of tensor `bias`"):
            nki.jit(optional)(a, np.ones((1, 1), F32))


def test_in_beta1_arguments_alone_have_a_truth() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        values = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf) if a else a
        return values if values else a

    with pytest.raises(NkiError, match="control flow depends on the value of tensor `sbuf1`"):
        nki_beta1.jit(kernel).capture(random(8, 8))


def test_the_truth_of_values_is_not_known() -> None:
    refused(lambda: bool(tile(1, 1)), NkiError, "control flow depends on the value")
    refused(lambda: bool(tile(8, 8)[0:4, :]), NkiError, "control flow depends on the value")
    refused(lambda: bool(nl.greater(filled(8, 8), filled(8, 8))), NkiError, "control flow depends on the value")


def pattern(a: NkiTensor) -> NkiTensor:
    """Column 1 of the rows, and the whole in another shape, by patterns over packed elements."""
    rows, columns = a.shape
    out = nl.ndarray((rows, 1 + columns), dtype=a.dtype, buffer=nl.shared_hbm)
    moved = tile(rows, 1 + columns)
    nisa.dma_copy(moved[:, 0:1], a.ap([[columns, rows], [1, 1]], offset=1))
    nisa.dma_copy(moved[:, 1:], a.reshape((rows * columns,)).reshape((rows, columns)))
    nisa.dma_copy(out, moved)
    return out


STRIDED: list[Callable[[Array], Array]] = [
    lambda a: a.T.copy().T,
    lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    lambda a: a[::-1].copy()[::-1],
]


@pytest.mark.parametrize("strided", STRIDED)
def test_arguments_with_strides_are_packed(strided: Callable[[Array], Array]) -> None:
    """A device has packed arrays only: a pattern means the same whatever strides numpy's array has."""
    a = random(8, 6)
    given = strided(a)
    assert not given.flags.c_contiguous
    with tt.profile(chip="trn2"):
        same(nki.jit(pattern)(given), np.concatenate([a[:, 1:2], a], axis=1))


def all_patterns(*arrays: NkiTensor, **named: NkiTensor) -> tuple[NkiTensor, ...]:
    """`pattern` of each."""
    return tuple(pattern(one) for one in (*arrays, *named.values()))


@pytest.mark.parametrize("strided", STRIDED)
def test_all_ways_to_trace_take_arguments_alike(strided: Callable[[Array], Array]) -> None:
    """Arrays of `*args` and `**kwargs` too; what a plan takes by name, and a capture keeps, are the packed arrays."""
    a, b, c = random(8, 6), random(8, 6, seed=81), random(8, 6, seed=82)
    kernel, expected = nki.jit(all_patterns), [np.concatenate([one[:, 1:2], one], axis=1) for one in (a, b, c)]
    with tt.profile(chip="trn2"):
        called = kernel(strided(a), b, c=strided(c))
        plan = kernel.plan(strided(a), b, c=strided(c))
        capture = kernel.capture(strided(a), b, c=strided(c))
        kept = run_plan_here(capture.plan(memory()), memory()).outputs
        ran = tt.plans.run_plan(plan, {"arrays0": a, "arrays1": b, "c": c}).outputs
    for found in (called, kept, ran):
        for one, right in zip(found, expected, strict=True):
            same(one, right)
    assert plan == kernel.plan(a, b, c=c)


def test_an_array_of_ours_is_packed_too() -> None:
    a = random(6, 8)
    given = tt.empty((6, 8))
    given.copy_(a)
    with tt.profile(chip="trn2"):
        same(nki.jit(pattern)(given.transpose()), np.concatenate([a.T[:, 1:2], a.T], axis=1))


def test_a_pattern_over_an_argument_that_cannot_be_packed() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        nisa.dma_copy(a.ap([[6, 8], [1, 6]]), tile(8, 6))
        return a

    kernel.__annotations__["a"] = "nt.mutable_tensor"
    with tt.profile(chip="trn2"), pytest.raises(NkiError, match="whose elements do not lie one behind the other"):
        nki.jit(kernel)(np.zeros((6, 8), F32).T)


SHAPES: list[tuple[Callable[[Any], Any], tuple[int, ...]]] = [
    (lambda t: t[:, 1:3, :], (16, 2, 2, 3)),
    (lambda t: t[:, :, 0:4], (16, 2, 2, 2, 2)),
    (lambda t: t[:, 1:4, 2:4], (16, 3, 1, 2)),
    (lambda t: t[:, 0:4:2, :], (16, 1, 2, 6)),
    (lambda t: t[:, 0:4:2, :], (16, 2, 3, 2)),
]


@pytest.mark.parametrize(("cut", "shape"), SHAPES)
def test_parts_are_reshaped_where_steps_allow_it(cut: Callable[[Any], Any], shape: tuple[int, ...]) -> None:
    """As numpy reshapes a part without a copy."""
    data = random(16, 4, 6)
    wanted = cut(data).reshape(shape)

    def body(out: NkiTensor, a: NkiTensor) -> None:
        for index in np.ndindex(shape[1:-1]):
            nisa.tensor_copy(out[(slice(None), *index)], cut(a).reshape(shape)[(slice(None), *index)])

    same(run(body, [data], (shape, F32))[0], wanted)


def test_parts_that_no_steps_reshape() -> None:
    refused(lambda: tile(16, 4, 6)[:, :, 0:4].reshape((16, 8, 2)).reshape((16, 16)), NkiError, "lie at equal steps")


def test_generations_are_compared() -> None:
    assert nisa.nc_version.gen2 < nisa.nc_version.gen3 <= 3 < nisa.nc_version.gen4


def test_numbers_of_modes() -> None:
    data = random(8, 8)

    def body(out: NkiTensor, a: NkiTensor) -> None:
        moved = tile(8, 8)
        nisa.dma_copy(moved, a, dge_mode=cast("Any", 3))
        nisa.dma_copy(out, moved, dge_mode=nisa.dge_mode.none)

    same(run_kernel(body, [data], ((8, 8), F32), raw=True)[0][0], data)
    refused(lambda: nisa.dma_copy(tile(8, 8), tile(8, 8), dge_mode=cast("Any", 4)), NkiError, "dge_mode=4 is no mode")


def test_the_least_float32_to_eight_digits() -> None:
    data = random(8, 8)

    def body(out: NkiTensor, a: NkiTensor, low: NkiTensor, high: NkiTensor) -> None:
        nisa.range_select(out, a, nl.greater_equal, nl.less, low, high, on_false_value=-3.4028235e38)

    found = run(body, [data, np.full((8, 1), 2, F32), np.full((8, 1), 5, F32)], ((8, 8), F32))[0]
    index = np.arange(8)
    same(found, np.where((index >= 2) & (index < 5), data, np.finfo(F32).min))


def test_cores_meet_at_an_argument() -> None:
    """Each writes its half of an array of the caller, and reads the other's."""

    def kernel(a: NkiTensor) -> tuple[NkiTensor, NkiTensor]:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        core = nl.program_id(0)
        mine, theirs = tile(8, 8), tile(8, 8)
        nisa.memset(mine, float(1 + core))
        nisa.dma_copy(a[nl.ds(core * 8, 8), :], mine)
        nisa.core_barrier(a, (0, 1))
        nisa.dma_copy(theirs, a[nl.ds((1 - core) * 8, 8), :])
        nisa.dma_copy(out[nl.ds(core * 8, 8), :], theirs)
        return out, a

    kernel.__annotations__["a"] = "nt.mutable_tensor"
    with tt.profile(chip="trn2"):
        out, _ = nki.jit(kernel)[2](np.zeros((16, 8), F32))
    same(out, np.repeat([[2.0], [1.0]], 8, axis=0) * np.ones((1, 8), F32))


def test_modules_of_the_library_s_imports() -> None:
    assert nki.dtype.bfloat16 is nl.bfloat16
    assert nisa.constants.oob_mode is nisa.oob_mode


def test_a_share_that_is_empty() -> None:
    """A core that gets no rows names them all the same; only what works on them is refused."""

    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        core, (rows, columns) = nl.program_id(0), a.shape
        share = rows if core == 1 else 0
        source, target = a[nl.ds(0, share), :], out[0:share, :]
        assert source.shape == (share, columns)
        for row in range(share):
            moved = tile(1, columns)
            nisa.dma_copy(moved, source[row : row + 1, :])
            nisa.dma_copy(target[row : row + 1, :], moved)
        return out

    data = random(3, 8)
    with tt.profile(chip="trn2"):
        same(nki.jit(kernel)[2](data), data)
    refused(lambda: nisa.tensor_copy(tile(8, 8), tile(8, 8)[:, 4:4]), NkiError, "a part of shape .8, 0. is empty")
    refused(lambda: tile(8, 8)[:, 4:3], NkiError, "the slice 4:3 of dimension 1 is empty")


def test_an_access_pattern_counts_partitions_from_the_part_of_a_tile_that_it_is_made_of() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        right = a[:, 4:10]
        nisa.tensor_copy(out, right.ap([[6, 16], [1, 3]], offset=2))

    a = random(16, 10)
    same(run(body, [a], ((16, 3), F32))[0], a[:, 6:9])


def test_an_offset_counts_partitions_as_the_first_step_does() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.tensor_copy(out, a[:, 4:10].ap([[6, 32], [1, 3]], offset=32 * 6 + 2))

    a = random(64, 10)
    same(run(body, [a], ((32, 3), F32))[0], a[32:, 6:9])


def test_an_access_pattern_of_a_part_of_a_tile_may_count_from_the_whole() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.tensor_copy(out, a[:, 4:10].ap([[10, 16], [1, 3]], offset=2))

    a = random(16, 10)
    same(run(body, [a], ((16, 3), F32))[0], a[:, 6:9])


@pytest.mark.parametrize("slot", [0, 7, 21, 30, 31, 2**32 - 1])
def test_a_scalar_offset_may_go_beyond_its_axis_and_not_beyond_the_storage(slot: int) -> None:
    """As in a paged cache [block, place, element]: the slot is a place counted over all blocks."""

    def kernel(a: NkiTensor, at: NkiTensor) -> NkiTensor:
        cache = nl.ndarray((4, 8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(cache, a)
        new, position = nl.ndarray((2, 16), nl.float32, nl.sbuf), nl.ndarray((1, 1), nl.uint32, nl.sbuf)
        nisa.memset(new, 7.0)
        nisa.dma_copy(position, at)
        target = cache.ap([[16, 2], [1, 16]], scalar_offset=position, indirect_dim=1)
        nisa.dma_copy(target, new, oob_mode=nisa.oob_mode.skip)
        return cache

    a = random(4, 8, 16)
    expected = a.reshape(32, 16).copy()
    expected[slot : slot + 2] = 7.0
    with tt.profile(chip="trn2"):
        found = nki.jit(kernel)(a, np.array([[slot]], np.uint32))
    same(found.reshape(32, 16), expected)
