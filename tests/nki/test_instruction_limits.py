"""What the instructions of `test_instructions.py` refuse, and that each name is there or known to be missing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from one_kernel import tile

from triptych.core.errors import NkiError, NkiLimitError, TriptychError, UnknownNkiName
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import isa_functions, nki
from triptych.languages.nki import language as nl
from triptych.languages.nki.isa_functions.function import IsaFunction
from triptych.languages.nki.listing import LISTING
from triptych.languages.nki.names import missing
from triptych.languages.nki.tracing.tensors import NkiTensor


def bits(operation: object, immediate: float) -> None:
    nisa.tensor_scalar(tile(8, 8, dtype=nl.int32), tile(8, 8, dtype=nl.int32), operation, immediate)


def refuse(body: Callable[[], object], error: type[TriptychError], message: str) -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.load(a))
        body()
        return out

    with pytest.raises(error) as caught:
        nki.jit(kernel).capture(np.zeros((1, 8), np.float32))
    assert re.search(message, str(caught.value)), str(caught.value)
    assert caught.value.where is not None
    assert caught.value.where.file == __file__


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        (lambda: nisa.max8(tile(8, 8), tile(8, 7)), NkiLimitError, "7 elements in each partition; expected 8 to 16384"),
        (lambda: nisa.max8(tile(8, 8), tile(8, 16385)), NkiLimitError, "16385 elements .* expected 8 to 16384"),
        (lambda: nisa.max8(tile(8, 9), tile(8, 64)), NkiLimitError, "'dst' .* 9 elements .* expected exactly 8"),
        (lambda: nisa.max8(tile(4, 8), tile(8, 64)), NkiError, "has 8 partitions, .* has 4"),
        (lambda: nisa.nc_find_index8(tile(8, 8), tile(8, 64), tile(8, 8)), NkiError,
         "'dst' .* is float32; expected uint16 or uint32"),
        (lambda: nisa.nc_find_index8(tile(8, 8, dtype=nl.uint32), tile(8, 64), tile(8, 4)), NkiLimitError,
         "'vals' .* 4 elements .* expected exactly 8"),
        (lambda: nisa.nc_match_replace8(tile(8, 64), tile(8, 64), tile(8, 8), imm=tile(8, 1)), NkiError,
         "operand 'imm' .* expected a number"),
        (lambda: nisa.bn_stats(tile(8, 6), tile(8, 513)), NkiLimitError,
         r"513 elements .* limit is 512 \(bn_stats_fmax\)"),
        (lambda: nisa.bn_aggr(tile(8, 2), tile(8, 7)), NkiError, "7 elements .* no multiple of 3"),
        (lambda: nisa.tensor_tensor_scan(tile(8, 8), tile(8, 8), tile(8, 9), 0.0, nl.add, nl.add), NkiError,
         "free total elements 8 != 'data1' free total elements 9"),
        (lambda: nisa.tensor_tensor_scan(
            tile(8, 8), tile(8, 8, buffer=nl.psum), tile(8, 8, buffer=nl.psum), 0.0, nl.add, nl.add),
         NkiError, "both lie in PSUM"),
        (lambda: nisa.tensor_tensor_scan(tile(8, 8), tile(8, 8), tile(8, 8), 0.0, nl.bitwise_or, nl.add), NkiError,
         "op0 'bitwise_or' is a bit operation"),
        (lambda: nisa.tensor_tensor_scan(tile(8, 8), tile(8, 8), tile(8, 8), tile(8, 2), nl.add, nl.add), NkiError,
         r"expected \[8, 1\] or a number"),
        (lambda: nisa.tensor_scalar_reduce(tile(8, 8), tile(8, 8), nl.add, 1.0, nl.less, tile(8, 1)), NkiError,
         "reduce_op is 'less'; the instruction has add, multiply, maximum, minimum"),
        (lambda: nisa.tensor_scalar_reduce(
            tile(8, 8), tile(8, 8), nl.add, 1.0, nl.add, tile(8, 1), reduce_cmd=nisa.reduce_cmd.reduce),
         NkiError, "the vector engine's reduction registers hold, which no instruction before has set"),
        (lambda: nisa.tensor_partition_reduce(tile(8, 8), nl.add, tile(8, 8)), NkiError, "8 partitions; expected 1"),
        (lambda: nisa.tensor_partition_reduce(tile(1, 8), nl.minimum, tile(8, 8)), NkiError, "op is 'minimum'"),
        (lambda: nisa.tensor_partition_reduce(tile(1, 8), nl.bitwise_or, tile(8, 8)), NkiError, "works on integers"),
        (lambda: nisa.select_reduce(tile(8, 8), tile(8, 8), tile(8, 8), 0.0), NkiError,
         "'predicate' .* float32; expected int8, uint8, int16, uint16 or bool"),
        (lambda: nisa.range_select(
            tile(8, 8), tile(8, 8), nl.less, nl.less, tile(8, 1), tile(8, 1), on_false_value=0.0),
         NkiError, "the engine has only nl.fp32.min"),
        (lambda: nisa.range_select(
            tile(8, 8), tile(8, 8), nl.less, nl.less, tile(8, 1), tile(8, 1), on_false_value=-1e300),
         NkiError, "the engine has only nl.fp32.min"),
        (lambda: nisa.range_select(
            tile(8, 8), tile(8, 8), nl.less, nl.less, tile(8, 1), tile(8, 1), range_start=(1 << 24) - 7),
         NkiLimitError, "the index reaches 16777216"),
        (lambda: nisa.range_select(tile(8, 8), tile(8, 8), nl.add, nl.less, tile(8, 1), tile(8, 1)), NkiError,
         "comp_op0 is 'add'"),
        (lambda: nisa.nc_stream_shuffle(tile(8, 8), tile(8, 8), [0] * 8), NkiError, "8 entries; expected 32"),
        (lambda: nisa.nc_stream_shuffle(tile(8, 8), tile(8, 8), [32] * 32), NkiError, "the entry 32"),
        (lambda: nisa.nc_stream_shuffle(tile(8, 8), tile(8, 8), [9] * 32), NkiError, "partition 9; .* has 8"),
        (lambda: nisa.dma_transpose(tile(8, 4), tile(8, 4)), NkiError, r"\[8, 4\]; expected \[4, 8\]"),
        (lambda: nisa.dma_transpose(tile(8, 4), tile(4, 8), axes=(0, 1)), NkiError, r"axes \(0, 1\)"),
        (lambda: nisa.dma_transpose(tile(8, 4), tile(4, 8), dge_mode=nisa.dge_mode.hwdge), NkiError, "16-bit dtype"),
        (lambda: nisa.dma_transpose(tile(8, 4), tile(4, 8), dge_mode=cast("Any", "hwdge")), NkiError, "is no mode"),
        (lambda: nl.transpose(tile(8, 4)[0:0]), NkiError, r"nl.transpose: .* of shape \[0, 4\] is empty"),
        (lambda: nl.matmul(tile(8, 4)[0:0], tile(8, 4), transpose_x=True), NkiError, r"of shape \[0, 4\] is empty"),
        (lambda: nisa.exponential(tile(8, 8), tile(8, 8)), NkiError, r"needs NeuronCore-v4 .* trn2 has NeuronCore-v3"),
        (lambda: nisa.tensor_copy_predicated(tile(8, 8), 0.0, tile(8, 8)), NkiError,
         "expected uint8, uint16, uint32 or bool"),
        (lambda: nisa.iota(tile(8, 8), [[1.5, 8]]), NkiError, "expected whole numbers"),
        (lambda: nisa.iota(tile(8, 8), [1, 8]), NkiError, "expected whole numbers"),
        (lambda: nisa.iota(tile(8, 8), "ab"), NkiError, r"'ab'; expected pairs \[step, count\]"),
        (lambda: nisa.iota(tile(8, 8), [[1, 2, 8]]), NkiError, r"expected pairs \[step, count\]"),
        (lambda: nisa.iota(tile(8, 8), [[1, -8], [1, -1]]), NkiError, r"the axis \[1, -8\]; .* a count of 1 or more"),
        (lambda: nisa.iota(tile(8, 8), [[1 << 70, 8]]), NkiLimitError, "counts in 32-bit integers"),
        (lambda: nisa.iota(tile(8, 8), [[1, 8]], offset=1 << 31), NkiLimitError, "made of 2147483648"),
        (lambda: nisa.affine_select(tile(8, 8), [[1, 8]], -1 << 80, tile(8, 8), 0.0), NkiLimitError, "32-bit integers"),
        (lambda: nisa.nc_stream_shuffle(tile(8, 8), tile(8, 8), None), NkiError, "shuffle_mask is None"),
        (lambda: nisa.range_select(
            tile(8, 8), tile(8, 8), nl.less, nl.less, tile(8, 1), tile(8, 1), range_start=float("nan")),
         NkiError, "range_start=nan: expected a whole number"),
        (lambda: nisa.range_select(
            tile(8, 8), tile(8, 8), nl.less, nl.less, tile(8, 1), tile(8, 1), range_start=float("inf")),
         NkiError, "range_start=inf: expected a whole number"),
        (lambda: nisa.range_select(
            tile(8, 8), tile(8, 8), nl.less, nl.less, tile(8, 1), tile(8, 1), range_start=-1 << 40),
         NkiLimitError, "the index reaches -1099511627776"),
        (lambda: nisa.dma_transpose(tile(8, 4), tile(4, 8), axes="ab"), NkiError, "axes is 'ab'; expected whole"),
        (lambda: nisa.nc_matmul(tile(8, 8, buffer=nl.psum), tile(8, 8), tile(8, 8), accumulate=1), NkiError,
         "accumulate=1; expected True, False or None"),
        (lambda: nisa.nc_matmul(tile(8, 8, buffer=nl.psum), tile(8, 8), tile(8, 8), tile_size=8), NkiError,
         "tile_size is 8; expected whole numbers"),
        (lambda: nisa.memset(tile(8, 8), 10**400), NkiError, "a number of 1329 bits is larger than any float"),
        (lambda: nisa.tensor_scalar(tile(8, 8), tile(8, 8), nl.add, -(10**400)), NkiError, "larger than any float"),
        (lambda: bits(nl.bitwise_and, 3.7), NkiError, "operand0 is 3.7, no whole number of 32 bits"),
        (lambda: bits(nl.bitwise_or, float("nan")), NkiError, "operand0 is nan, no whole number of 32 bits"),
        (lambda: bits(nl.bitwise_xor, 1 << 32), NkiError, "no whole number of 32 bits"),
        (lambda: bits(nl.bitwise_xor, -(1 << 31) - 1), NkiError, "no whole number of 32 bits"),
        (lambda: bits(nl.left_shift, -1), NkiError, "'left_shift' by -1: an amount to shift by cannot be negative"),
        (lambda: nisa.select_reduce(
            tile(8, 8), tile(8, 8, dtype=nl.uint8), tile(8, 8, dtype=nl.uint32), 0.0),
         NkiError, "'on_true' .* is uint32, which the instruction does not take"),
        (lambda: nisa.select_reduce(
            tile(8, 8), tile(8, 8, dtype=nl.uint8), tile(8, 8), 0.0, tile(8, 1, dtype=nl.int32),
            nisa.reduce_cmd.reset_reduce),
         NkiError, "'reduce_res' .* is int32; expected a float"),
    ],
)  # fmt: skip
def test_refused(body: Callable[[], object], error: type[TriptychError], message: str) -> None:
    refuse(body, error, message)


def test_what_is_missing_follows_from_what_there_is() -> None:
    for module, space in (("nki.isa", nisa), ("nki.language", nl)):
        absent = missing(module, vars(space))
        assert set(absent) | set(space.__all__) == LISTING[module]
        assert not set(absent) & set(space.__all__)
        for name in absent:
            with pytest.raises(UnknownNkiName, match=rf"{module}.{name} is not implemented"):
                getattr(space, name)
    assert "max8" in nisa.__all__
    assert nl.prod is not np.prod
    assert nl.prod.__module__.endswith("reductions")


def test_every_declaration_is_a_name_of_the_module() -> None:
    """A function whose name the listing lacks would reach no author."""
    for part in isa_functions.PARTS:
        for name, thing in vars(part).items():
            if isinstance(thing, IsaFunction):
                assert getattr(nisa, name) is thing


def test_every_declaration_is_called_by_a_test() -> None:
    """A new function without a test fails here: what it computes, and what it refuses, is for `tests/nki`."""
    texts = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    functions = {
        name for part in isa_functions.PARTS for name, thing in vars(part).items() if type(thing) is IsaFunction
    }
    called = {name for name in functions if re.search(rf"\b(nisa|isa|language)\.{name}\b|\"{name}\"", texts)}
    assert functions == called, functions - called
