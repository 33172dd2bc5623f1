"""What the machine finds while it runs: undefined data, lost outputs, overlapping programs, doubtful accumulation."""

from __future__ import annotations

import numpy as np
import pytest

from triptych.core.checks import Severity
from triptych.core.settings import scope
from triptych.execution.profile import Profile, profile
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.tracing.tensors import NkiTensor


def checks(profile: Profile) -> dict[str, str]:
    return {finding.check: finding.message for finding in profile.launches[-1].findings}


def test_undefined_data_reaches_an_output(trn2: Profile) -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        half = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(half[:, 0:5], a[:, 0:5])
        nl.store(out, nl.exp(half))
        return out

    result = kernel(np.zeros((8, 8), np.float32))
    assert np.isnan(result[:, 5:]).all()
    found = checks(trn2)
    assert "24 of 64 elements stored" in found["initcheck"]
    (finding,) = [one for one in trn2.launches[-1].findings if one.check == "initcheck"]
    assert finding.severity is Severity.ERROR
    assert finding.where is not None
    assert finding.where.text == "nl.store(out, nl.exp(half))"


def test_a_tile_in_the_memory_of_a_dropped_one_is_undefined(trn2: Profile) -> None:
    """What a tile that nothing names any longer held is seen by none that comes after it."""

    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((3, 128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
        for index in range(2):
            nl.store(out[index], nl.exp(nl.load(a)))  # both tiles are dropped here
        half = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(half[:, 0:32], a[:, 0:32])
        nl.store(out[2], half)
        return out

    given = np.ones((128, 64), np.float32)
    result = kernel(given)
    np.testing.assert_array_equal(result[:2], np.full((2, 128, 64), np.float32(np.exp(1.0))))
    np.testing.assert_array_equal(result[2, :, :32], given[:, :32])
    assert np.isnan(result[2, :, 32:]).all()
    assert "4096 of 8192 elements stored" in checks(trn2)["initcheck"]


@pytest.mark.parametrize("operation", ["transpose", "sum", "matmul", "column"])
def test_undefined_data_spreads(operation: str, trn2: Profile) -> None:
    expected = {"transpose": 16, "sum": 8, "matmul": 64, "column": 0}

    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        shape = (8, 1) if operation == "sum" else (8, 8)
        out = nl.ndarray(shape, dtype=nl.float32, buffer=nl.shared_hbm)
        data = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(data[:, 0:6], a[:, 0:6])
        if operation == "transpose":
            result = nl.transpose(data)
        elif operation == "sum":
            result = nl.sum(data, axis=1)
        elif operation == "matmul":
            result = nl.copy(nl.matmul(data, nl.load(a), transpose_x=False))
        else:
            result = nisa.tensor_scalar(nl.load(a), nl.add, data[:, 2:3])
        nl.store(out, result)
        return out

    kernel(np.zeros((8, 8), np.float32))
    found = checks(trn2).get("initcheck", "0 of")
    assert found.startswith(f"{expected[operation]} of")


def test_masked_out_data_is_no_finding(trn2: Profile) -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:128, 0:64]
        mask = i_p < a.shape[0]
        nl.store(out[i_p, i_f], nl.exp(nl.load(a[i_p, i_f], mask=mask)), mask=mask)
        return out

    kernel(np.zeros((100, 64), np.float32))
    assert checks(trn2) == {}


def test_an_output_that_is_only_half_stored(trn2: Profile) -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out[0:4, :], nl.load(a[0:4, :]))
        return out

    result = kernel(np.zeros((8, 8), np.float32))
    assert np.isnan(result[4:]).all()
    assert "32 of 64 elements of the output" in checks(trn2)["outputcheck"]
    (where,) = (one.where for one in trn2.launches[-1].findings if one.check == "outputcheck")
    assert where is not None
    assert (where.file, where.text.partition(" = nl.ndarray")[0]) == (__file__, "out")


def test_programs_that_store_the_same_elements(trn2: Profile) -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        start = nl.program_id(0) * 4
        rows, columns = nl.arange(8)[:, None], nl.arange(8)[None, :]
        nl.store(out[start + rows, columns], nl.load(a[start + rows, columns]))
        return out

    kernel[2](np.zeros((12, 8), np.float32))
    assert "program 1 stores to elements of" in checks(trn2)["racecheck"]


def test_accumulation_without_a_first_product(trn2: Profile) -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        acc = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.psum)
        nisa.memset(acc, 0.0)
        data = nl.load(a)
        nisa.nc_matmul(acc, data, data, accumulate=True)
        nl.store(out, nl.copy(acc))
        return out

    kernel(np.ones((8, 8), np.float32))
    assert "no matmul has written" in checks(trn2)["psumcheck"]


def test_a_product_replaces_what_was_set(trn2: Profile) -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        acc = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.psum)
        nisa.memset(acc, 5.0)
        data = nl.load(a)
        nisa.nc_matmul(acc, data, data)
        nl.store(out, nl.copy(acc))
        return out

    result = kernel(np.ones((8, 8), np.float32))
    assert np.array_equal(result, np.full((8, 8), 8.0))
    assert "replaces what another engine wrote" in checks(trn2)["psumcheck"]


def test_arguments_outside_a_function_s_range(trn2: Profile) -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        outside = nl.load(a)
        nisa.activation(dst=outside, op=nl.sin, data=outside)
        nl.store(out, outside)
        return out

    kernel(np.full((8, 8), 3.0, np.float32))
    assert checks(trn2) == {}
    kernel(np.full((8, 8), 9.0, np.float32))
    assert "'sin' of values whose magnitude is outside" in checks(trn2)["rangecheck"]


def test_scratch_in_hbm() -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        scratch = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.hbm)
        nisa.dma_copy(scratch, a)
        nisa.dma_copy(out, scratch)
        return out

    a = np.random.default_rng(70).random((300, 7)).astype(np.float32)
    assert np.array_equal(kernel(a), a)


@nki.jit
def everything_wrong(a: NkiTensor) -> NkiTensor:
    """Undefined data, an output half stored, a product onto what another engine set, and a sine far out."""
    out = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    acc = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.psum)
    half = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(acc, 5.0)
    data = nl.load(a)
    nisa.nc_matmul(acc, data, data)
    nisa.dma_copy(half[:, 0:5], a[:, 0:5])
    nl.store(out[0:2, :], half[0:2, :])
    outside = nl.copy(acc)
    nisa.activation(dst=outside, op=nl.sin, data=outside)
    nl.store(out[2:4, :], outside[2:4, :])
    return out


SEEN = {"initcheck", "outputcheck", "psumcheck", "rangecheck"}


def test_all_checks_look_where_none_is_asked_for(trn2: Profile) -> None:
    everything_wrong(np.full((8, 8), 3.0, np.float32))
    assert {*checks(trn2)} == SEEN
    assert SEEN | {"memcheck", "budget", "deadlock", "racecheck", "nki.generation", "nki.compiler"} == {
        *trn2.launches[-1].checks
    }


@pytest.mark.parametrize("asked", ["", "memcheck", "initcheck", "outputcheck,psumcheck", "rangecheck,racecheck"])
def test_only_the_checks_asked_for_look(asked: str) -> None:
    names = {name for name in asked.split(",") if name}
    with profile(chip="trn2", check=asked or []) as recorded:
        result = everything_wrong(np.full((8, 8), 3.0, np.float32))
    (launch,) = recorded.launches
    assert {finding.check for finding in launch.findings} == names & SEEN
    assert {*launch.checks} == names | {"memcheck", "budget", "deadlock"}
    with profile(chip="trn2"):
        assert np.array_equal(result, everything_wrong(np.full((8, 8), 3.0, np.float32)), equal_nan=True)


def test_a_race_and_a_notice_are_told_where_they_are_asked_for() -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        start = nl.program_id(0) * 4
        rows, columns = nl.arange(8)[:, None], nl.arange(8)[None, :]
        nl.store(out[start + rows, columns], nl.load(a[start + rows, columns]))
        return out

    for asked in ("racecheck", "nki.generation", "initcheck"):
        with profile(chip="trn2", check=asked) as recorded:
            kernel[2](np.zeros((12, 8), np.float32))
        found = {finding.check for finding in recorded.findings}
        assert found == {asked} - {"initcheck"}


@pytest.mark.parametrize("programs", [2, 255, 256, 257])
def test_the_last_program_stores_over_the_first(programs: int, trn2: Profile) -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((programs - 1, 1, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out[nl.program_id(0) % (programs - 1)], nl.load(a))
        return out

    kernel[(programs,)](np.ones((1, 4), np.float32))
    assert f"program {programs - 1} stores to elements" in checks(trn2)["racecheck"]


def test_programs_run_in_the_order_of_the_setting(trn2: Profile) -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((1, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.load(a[nl.program_id(0)]))
        return out

    rows = np.arange(8, dtype=np.float32).reshape(2, 1, 4)
    assert np.array_equal(kernel[(2,)](rows), rows[1])  # the last to run stores last
    with scope(block_order="descending"):
        assert np.array_equal(kernel[(2,)](rows), rows[0])
    assert "program 0 stores to elements" in trn2.findings[-1].message


def test_a_repeated_element_is_one_element(trn2: Profile) -> None:
    """A step of 0 writes as many elements as the tile has, but not each of them."""

    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        made = nl.ndarray((8, 4), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(made.ap([[4, 8], [0, 4]]), 1.0)
        nisa.dma_copy(out, made)
        return out

    result = kernel(np.zeros((8, 4), np.float32))
    assert (result[:, 0] == 1).all()
    assert np.isnan(result[:, 1:]).all()
    assert "24 of 32 elements stored" in checks(trn2)["initcheck"]
    assert "24 of 32 elements of the output" in checks(trn2)["outputcheck"]


@pytest.mark.parametrize(("selected", "undefined"), [(8, 0), (5, 24)])
def test_what_is_not_selected_need_not_be_defined(selected: int, undefined: int, trn2: Profile) -> None:
    @nki.jit
    def kernel(predicate: NkiTensor, a: NkiTensor) -> tuple[NkiTensor, NkiTensor, NkiTensor]:
        made = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy_predicated(made, nl.load(a), nl.load(predicate))
        out = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, made)
        half = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(half[:, 0:selected], 1.0)
        chosen = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.sbuf)
        largest = nl.ndarray((8, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.select_reduce(chosen, nl.load(predicate), half, 0.0, largest, nisa.reduce_cmd.reset_reduce)
        result = nl.ndarray((8, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(result, largest)
        affine = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.affine_select(affine, [[1, 8]], 0, half, 2.0, cmp_op=nl.less, offset=-selected)
        again = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(again, affine)
        return out, result, again

    predicate = np.zeros((8, 8), np.uint8)
    predicate[:, :selected] = 1
    out, result, again = kernel(predicate, np.ones((8, 8), np.float32))
    assert (out[:, :selected] == 1).all()
    assert (result == 1).all()
    assert np.array_equal(again, np.where(np.arange(8) < selected, 1.0, 2.0) * np.ones((8, 1)))
    messages = [finding.message for finding in trn2.launches[-1].findings if finding.check == "initcheck"]
    assert [message.split(" elements")[0] for message in messages] == ([f"{undefined} of 64"] if undefined else [])


def test_a_selection_by_undefined_data_is_undefined(trn2: Profile) -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> tuple[NkiTensor, NkiTensor]:
        out = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        largest = nl.ndarray((8, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        predicate = nl.ndarray((8, 8), dtype=nl.uint8, buffer=nl.sbuf)
        nisa.memset(predicate[:, 0:6], 1)
        chosen = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.sbuf)
        row = nl.ndarray((8, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.select_reduce(chosen, predicate, nl.load(a), 0.0, row, nisa.reduce_cmd.reset_reduce)
        nl.store(out, chosen)
        nl.store(largest, row)
        return out, largest

    kernel(np.zeros((8, 8), np.float32))
    messages = [finding.message for finding in trn2.launches[-1].findings if finding.check == "initcheck"]
    assert [message.split(" elements")[0] for message in messages] == ["16 of 64", "8 of 8"]
