"""Virtual registers, loops on the device, and indices that are known only when the kernel runs."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from one_kernel import F32, accepted, filled, loaded, random, refused, run, run_kernel, same, tile

from triptych.core.errors import BudgetExceeded, MemoryFault, NkiError, NkiLimitError, PlanError
from triptych.core.settings import scope
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki.tracing.registers import VirtualRegister
from triptych.languages.nki.tracing.tensors import NkiTensor

I32 = np.int32


def bound(array: NkiTensor) -> VirtualRegister:
    """A register that holds the one integer of an array."""
    register = nisa.register_alloc()
    nisa.register_load(register, loaded(array))
    return register


@pytest.mark.parametrize("value", [0, 1, -1, 2**31 - 1, -(2**31)])
def test_registers_hold_32_bits(value: int) -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        first, second = nisa.register_alloc(), nisa.register_alloc(7)
        nisa.register_load(first, a)
        nisa.register_move(second, first)
        nisa.register_store(out, second)

    same(run(body, [np.array([[value]], I32)], ((1, 1), I32))[0], np.array([[value]]))


def test_unsigned_bits_stay() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        register = nisa.register_alloc(2**32 - 2)
        nisa.register_store(out, register)
        del a

    same(run(body, [np.zeros((1, 1), I32)], ((1, 1), I32))[0], np.array([[-2]]))


@pytest.mark.parametrize("count", [0, 1, 3, 8])
def test_fori_loop_of_a_runtime_bound(count: int) -> None:
    """out[i] = a[i] + i for the first `count` rows, i known when it runs alone."""

    def body(out: NkiTensor, a: NkiTensor, upper: NkiTensor) -> None:
        nisa.dma_copy(out, filled(8, 16, value=-1.0))
        held = tile(1, 1, dtype=nl.int32)

        def step(i: VirtualRegister) -> None:
            row = tile(1, 16)
            nisa.dma_copy(row, a[nl.ds(i, 1), :])
            nisa.register_store(held, i)
            wide = nl.copy(held, nl.float32)
            nisa.tensor_scalar(row, row, nl.add, wide)
            nisa.dma_copy(out[nl.ds(i, 1), :], row)

        nl.fori_loop(0, bound(upper), step)

    a = random(8, 16)
    (found,), findings = run_kernel(body, [a, np.array([[count]], I32)], ((8, 16), F32), raw=True)
    expected = np.full((8, 16), -1.0, F32)
    expected[:count] = a[:count] + np.arange(count, dtype=F32)[:, np.newaxis]
    same(found, expected)
    assert findings == {}


@pytest.mark.parametrize(("lower", "upper", "step"), [(0, 9, 1), (2, 9, 3), (5, 5, 1), (-3, 2, 2), (9, 2, 1)])
def test_fori_loop_counts_as_range_does(lower: int, upper: int, step: int) -> None:
    def body(out: NkiTensor, zero: NkiTensor) -> None:
        nisa.tensor_copy(out, zero)
        held = tile(1, 1, dtype=nl.int32)

        def add(i: VirtualRegister) -> None:
            nisa.register_store(held, i)
            nisa.tensor_tensor(out, out, held, op=nl.add)

        nl.fori_loop(lower, upper, add, step)

    same(run(body, [np.zeros((1, 1), I32)], ((1, 1), I32))[0], np.array([[sum(range(lower, upper, step))]]))


def test_loops_nest_and_tiles_of_a_body_begin_anew() -> None:
    """A 3 x 4 grid of sums; the tile that the inner body declares is undefined in each round."""

    def body(out: NkiTensor, a: NkiTensor) -> None:
        def outer(i: VirtualRegister) -> None:
            total = filled(1, 4, value=0.0)

            def inner(j: VirtualRegister) -> None:
                part = tile(1, 4)
                nisa.dma_copy(part, a[nl.ds(j, 1), :])
                nisa.tensor_tensor(total, total, part, op=nl.add)

            nl.fori_loop(0, 5, inner)
            nisa.dma_copy(out[nl.ds(i, 1), :], total)

        nl.fori_loop(0, 3, outer)

    a = np.arange(20, dtype=F32).reshape(5, 4)
    (found,), findings = run_kernel(body, [a], ((3, 4), F32), raw=True)
    same(found, np.broadcast_to(a.sum(axis=0), (3, 4)))
    assert findings == {}


@pytest.mark.parametrize("count", [0, 1, 6])
def test_while_loop(count: int) -> None:
    """2 ** count, by a counter in SBUF that the loop's condition is loaded from."""

    def body(out: NkiTensor, counter: NkiTensor) -> None:
        nisa.memset(out, 1.0)
        one = filled(1, 1, dtype=nl.int32, value=1)
        register = nisa.register_alloc()
        nisa.register_load(register, counter)

        def step(_: VirtualRegister) -> VirtualRegister:
            nisa.tensor_scalar(out, out, nl.multiply, 2.0)
            nisa.tensor_tensor(counter, counter, one, op=nl.subtract)
            following = nisa.register_alloc()
            nisa.register_load(following, counter)
            return following

        nl.while_loop(register, step)

    same(run(body, [np.array([[count]], I32)], ((1, 1), F32))[0], np.array([[2.0**count]]))


@pytest.mark.parametrize("count", [0, 1, 6])
def test_while_of_a_register(count: int) -> None:
    """The same; its body is traced once, and another loop stands in it."""
    rounds: list[int] = []

    def body(out: NkiTensor, counter: NkiTensor) -> None:
        nisa.memset(out, 1.0)
        one = filled(1, 1, dtype=nl.int32, value=1)
        outer, inner = nisa.register_alloc(), nisa.register_alloc()
        nisa.register_load(outer, counter)
        while outer:
            rounds.append(1)
            once = filled(1, 1, dtype=nl.int32, value=1)
            nisa.register_load(inner, once)
            while inner:
                nisa.tensor_scalar(out, out, nl.multiply, 2.0)
                nisa.tensor_tensor(once, once, one, op=nl.subtract)
                nisa.register_load(inner, once)
            nisa.tensor_tensor(counter, counter, one, op=nl.subtract)
            nisa.register_load(outer, counter)

    (found,), findings = run_kernel(body, [np.array([[count]], I32)], ((1, 1), F32))
    same(found, np.array([[2.0**count]]))
    assert len(rounds) == 1
    assert findings == {}


def left_by_break() -> None:
    register = nisa.register_alloc(1)
    while register:
        for _ in range(2):
            break
        if tile(1, 1).shape:
            break


def left_behind_a_loop() -> None:
    register = nisa.register_alloc(1)
    while register:
        for _ in range(2):
            pass
        else:  # what a `break` there leaves is the loop around it
            break


def left_by_return() -> None:
    register = nisa.register_alloc(1)
    while register:
        return


def with_an_else() -> None:
    register = nisa.register_alloc(1)
    while register:
        nisa.register_move(register, 0)
    else:  # what is refused
        pass


def of_another_register() -> None:
    register = nisa.register_alloc(1)
    while register:
        register = nisa.register_alloc(0)


def negated() -> None:
    register = nisa.register_alloc(1)
    while not register:
        nisa.register_move(register, 0)


def together() -> None:
    register = nisa.register_alloc(1)
    while register and True:  # what is refused
        nisa.register_move(register, 0)


def asked_if() -> None:
    if nisa.register_alloc(1):
        nisa.memset(tile(1, 1), 0.0)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (left_by_break, "`while register:` has a `break`: a loop of the device ends by its condition alone"),
        (left_behind_a_loop, "has a `break`"),
        (left_by_return, "has a `return`"),
        (with_an_else, "has an `else`"),
        (of_another_register, "is another register at the end of its body"),
        (lambda: in_order(lambda: of_another_register()), r"inside of nl.no_reorder\(\)"),
        (negated, "the value of a register is not known"),
        (together, "the value of a register is not known"),
        (asked_if, "the value of a register is not known"),
    ],
)
def test_while_that_the_device_has_not(body: Callable[[], object], message: str) -> None:
    refused(body, NkiError, message)


LOOPS = """
from triptych.languages.nki import isa as nisa

def body(marks):
    registers = [nisa.register_alloc(1) for _ in range(2)]
    for register in registers:
        while register:
            marks.append({mark})
            nisa.register_move(register, 0)
"""


def test_the_loops_of_a_file_are_found_once_and_anew_where_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    whole = ast.parse

    def parse(text: str) -> ast.Module:
        parsed.append(text)
        return whole(text)

    file = tmp_path / "loops.py"
    for text in (LOOPS.format(mark=1), "# moved\n# down" + LOOPS.format(mark=22)):
        file.write_text(text)
        linecache.checkcache(str(file))
        found: dict[str, Any] = {}
        exec(compile(text, str(file), "exec"), found)
        marks: list[int] = []
        with monkeypatch.context() as patched:
            patched.setattr(ast, "parse", parse)
            accepted(functools.partial(found["body"], marks))
        assert marks == [22 if "moved" in text else 1] * 2
    assert parsed == [LOOPS.format(mark=1), "# moved\n# down" + LOOPS.format(mark=22)]


def test_dynamic_range_traces_its_body_once() -> None:
    rounds: list[int] = []

    def body(out: NkiTensor, a: NkiTensor, upper: NkiTensor) -> None:
        nisa.dma_copy(out, filled(1, 8, value=0.0))
        total = filled(1, 8, value=0.0)
        for i in nl.dynamic_range(bound(upper)):
            rounds.append(1)
            row = tile(1, 8)
            nisa.dma_copy(row, a[i, :].reshape((1, 8)))
            nisa.tensor_tensor(total, total, row, op=nl.add)
        nisa.dma_copy(out, total)

    a = random(6, 8).round()
    (found,), _ = run_kernel(body, [a, np.array([[4]], I32)], ((1, 8), F32), raw=True)
    same(found, a[:4].sum(axis=0, keepdims=True))
    assert len(rounds) == 1


def test_a_loop_that_never_ends_is_stopped() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.tensor_copy(out, a)
        nl.while_loop(nisa.register_alloc(1), lambda register: register)

    with scope(budget=100), pytest.raises(BudgetExceeded, match="its loops ran more than 100 rounds") as caught:
        run(body, [np.zeros((1, 1), F32)], ((1, 1), F32))
    assert caught.value.where is not None


# Indices


def gather(indices: NDArray[np.int32], skip: bool = False) -> tuple[np.ndarray, dict[str, str]]:
    def body(out: NkiTensor, data: NkiTensor, index: NkiTensor) -> None:
        result = filled(indices.size, 8, value=-1.0)
        source = data.ap(pattern=[[8, indices.size], [1, 8]], vector_offset=loaded(index), indirect_dim=0)
        mode = nisa.oob_mode.skip if skip else nisa.oob_mode.error
        nisa.dma_copy(dst=result, src=source, oob_mode=mode)
        nisa.dma_copy(out, result)

    (found,), findings = run_kernel(body, [DATA, indices.reshape(-1, 1)], ((indices.size, 8), F32), raw=True)
    return found, dict(findings)


DATA = random(10, 8)


@pytest.mark.parametrize("indices", [[3], [0, 9, 0, 4], list(range(10)), [9] * 64])
def test_dma_gathers_rows(indices: list[int]) -> None:
    found, findings = gather(np.array(indices, I32))
    same(found, DATA[indices])
    assert findings == {}


@pytest.mark.parametrize("wrong", [10, -1, 2**31 - 1])
def test_an_index_outside_is_a_fault_or_left_out(wrong: int) -> None:
    indices = np.array([1, wrong, 2], I32)
    with pytest.raises(MemoryFault, match=rf"Out-of-bound access for tensor `.*`: the index {wrong}, .* 0 to 9"):
        gather(indices)
    found, _ = gather(indices, skip=True)
    same(found, np.stack([DATA[1], np.full(8, -1.0), DATA[2]]))


def test_dma_scatters_rows() -> None:
    def body(out: NkiTensor, data: NkiTensor, index: NkiTensor) -> None:
        nisa.dma_copy(out, filled(10, 8, value=0.0))
        rows = out.vector_select(0, loaded(index))
        nisa.dma_copy(dst=rows, src=loaded(data))

    places = np.array([[7], [0], [3]], I32)
    (found,), findings = run_kernel(body, [DATA[:3], places], ((10, 8), F32), raw=True)
    expected = np.zeros((10, 8), F32)
    expected[places[:, 0]] = DATA[:3]
    same(found, expected)
    assert findings == {}


def scatter_add(places: list[int]) -> tuple[np.ndarray, dict[str, str]]:
    def body(out: NkiTensor, data: NkiTensor, index: NkiTensor) -> None:
        nisa.dma_copy(out, filled(10, 8))
        rows = out.vector_select(0, loaded(index))
        nisa.dma_compute(dst=rows, srcs=[loaded(data), rows], reduce_op=nl.add)

    index = np.array(places, I32).reshape(-1, 1)
    (found,), findings = run_kernel(body, [DATA[: len(places)], index], ((10, 8), F32), raw=True)
    return found, dict(findings)


def test_dma_adds_to_rows() -> None:
    found, findings = scatter_add([4, 1, 9])
    expected = np.ones((10, 8), F32)
    expected[[4, 1, 9]] += DATA[:3]
    same(found, expected)
    assert findings == {}


def test_rows_that_are_named_twice_are_a_finding() -> None:
    _, findings = scatter_add([4, 1, 4])
    assert "are named several times" in findings["memcheck"]


def test_dma_adds_up_many() -> None:
    def body(out: NkiTensor, *tiles: NkiTensor) -> None:
        nisa.dma_compute(out, list(tiles), nl.add)

    inputs = [random(4, 8, seed=seed) for seed in range(16)]
    expected = inputs[0]
    for one in inputs[1:]:
        expected = expected + one
    same(run(body, inputs, ((4, 8), F32))[0], expected)


@pytest.mark.parametrize("place", [0, 5, 28])
def test_a_tile_is_sliced_by_a_register(place: int) -> None:
    def body(out: NkiTensor, a: NkiTensor, at: NkiTensor) -> None:
        register = nisa.register_alloc()
        nisa.register_load(register, at)
        nisa.tensor_copy(out, a[:, nl.ds(register, 4)])

    a = random(16, 32)
    same(run(body, [a, np.array([[place]], I32)], ((16, 4), F32))[0], a[:, place : place + 4])


def test_a_tile_is_moved_by_the_element_of_another() -> None:
    def body(out: NkiTensor, a: NkiTensor, at: NkiTensor) -> None:
        nisa.tensor_copy(out, a.ap([[32, 16], [2, 3]], scalar_offset=at, indirect_dim=1))

    a = random(16, 32)
    same(run(body, [a, np.array([[5]], I32)], ((16, 3), F32))[0], a[:, 5:11:2])


def test_a_register_begins_with_the_element_of_a_tensor() -> None:
    def body(out: NkiTensor, a: NkiTensor, at: NkiTensor) -> None:
        nisa.tensor_copy(out, a[:, nl.ds(nisa.register_alloc(at[0, 1]), 4)])

    a = random(16, 32)
    same(run(body, [a, np.array([[3, 11]], I32)], ((16, 4), F32))[0], a[:, 11:15])


def test_a_static_index_into_a_dynamic_slice_stays_inside() -> None:
    def body(out: NkiTensor, a: NkiTensor, at: NkiTensor) -> None:
        register = nisa.register_alloc()
        nisa.register_load(register, at)
        nisa.tensor_copy(out, a[:, nl.ds(register, 4)])

    with pytest.raises(MemoryFault, match="the index 29, known only when the kernel runs, is outside of 0 to 28"):
        run(body, [random(16, 32), np.array([[29]], I32)], ((16, 4), F32))


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("place", [29, 30, 31])
def test_a_scalar_offset_does_not_lead_into_the_next_partition(place: int, written: bool) -> None:
    """Of 16 partitions of 32 elements: the 4 elements from 29 on would end in the partition behind."""

    def body(out: NkiTensor, a: NkiTensor, at: NkiTensor) -> None:
        other = filled(8, 4)
        moved = a.ap([[32, 8], [1, 4]], scalar_offset=at, indirect_dim=1)
        nisa.tensor_copy(moved if written else other, other if written else moved)
        nisa.tensor_copy(out, a[0:8, 28:32])

    inputs = [random(16, 32), np.array([[place]], I32)]
    with pytest.raises(MemoryFault, match=f"the index {place}, .* moves the access beyond the 32 elements of a part"):
        run(body, inputs, ((8, 4), F32))


def test_an_index_that_nobody_wrote_is_a_finding() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.tensor_copy(out, a[:, nl.ds(nisa.register_alloc(), 4)])

    _, findings = run_kernel(body, [random(16, 32)], ((16, 4), F32))
    assert "depends on `register" in findings["initcheck"]


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        (lambda: nisa.register_load(nisa.register_alloc(), tile(1, 2, dtype=nl.int32)), NkiError, "of one element"),
        (lambda: nisa.register_load(nisa.register_alloc(), tile(1, 1)), NkiError, "'src' .* float32; expected int8"),
        (lambda: nisa.register_alloc(2**33), NkiError, "a whole number of 32 bits"),
        (lambda: bool(nisa.register_alloc(1)), NkiError, "the value of a register is not known"),
        (lambda: nisa.register_alloc(1) * 128, NkiError, "the value of a register is not known"),  # type: ignore[operator]
        (lambda: range(nisa.register_alloc(1)), NkiError, "the value of a register is not known"),  # type: ignore[arg-type]
        (lambda: nl.affine_range(nisa.register_alloc(1)), NkiError, "the bound of an unrolled loop is a register"),  # type: ignore[arg-type]
        (lambda: nl.fori_loop(0, 4, lambda i: None, 0), NkiError, "step=0"),
        (lambda: nl.fori_loop(0, 4.5, lambda i: None), NkiError, "upper is 4.5"),
        (lambda: nl.while_loop(nisa.register_alloc(1), lambda r: None), NkiError, "must return the next condition"),  # type: ignore[arg-type]
        (lambda: in_order(lambda: nl.fori_loop(0, 4, lambda i: None)), NkiError, r"inside of nl.no_reorder\(\)"),
        (lambda: tile(64, 8)[nl.ds(nisa.register_alloc(0), 8), :], NkiError, "cannot choose partitions"),
        (lambda: tile(64, 8)[:, nl.ds(nisa.register_alloc(0), 9)], NkiLimitError, r"index range \[0, 8\]"),
        (lambda: tile(64, 8).vector_select(0, tile(64, 1, dtype=nl.int32)), NkiError, "the tensor in HBM"),
        (lambda: tile(64, 8).ap([[8, 64], [1, 8]], vector_offset=tile(64, 1, dtype=nl.int32)), NkiError,
         "vector_offset needs indirect_dim=0 and a tensor in HBM"),
        (lambda: nisa.tensor_copy(tile(64, 4), tile(64, 8).ap([[8, 64], [1, 4]], scalar_offset=tile(1, 1),
                                                            indirect_dim=1)),
         NkiError, "indexed by `.*` of float32; expected int32 or uint32"),
        (lambda: nisa.dma_compute(tile(4, 4), [tile(4, 4)] * 17, nl.add), NkiError, "17 srcs; expected 1 to 16"),
        (lambda: nisa.dma_compute(tile(4, 4), [tile(4, 4)], nl.add, scales=[2.0]), NkiError, "all must be 1.0"),
        (lambda: nisa.dma_compute(tile(4, 4), [tile(4, 4)], nl.maximum), NkiError, "a DMA has add"),
        (lambda: nisa.dma_compute(tile(4, 4), [tile(4, 5)], nl.add), NkiError,
         r"same number of elements, got srcs\[0\]=20, dst=16"),
    ],
)  # fmt: skip
def test_refused(body: Callable[[], object], error: type[NkiError], message: str) -> None:
    refused(body, error, message)


def in_order(body: Callable[[], object]) -> None:
    with nl.no_reorder():
        body()


def test_a_loop_left_by_break_is_refused() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.tensor_copy(out, a)
        for _ in nl.dynamic_range(4):
            break

    with pytest.raises((NkiError, PlanError), match="has no end"):
        run(body, [random(4, 8)], ((4, 8), F32))
