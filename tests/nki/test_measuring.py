"""`nki.benchmark` and its like: modelled times that say so; and Beta 1's compiler module, tensors' methods, typing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from one_kernel import F32, Array, random, run_beta1, same

import triptych as tt
from triptych.core.errors import NkiError, NkiLimitError
from triptych.core.output import redirecting
from triptych.languages.nki import compiler, nki, nki_beta1, typing
from triptych.languages.nki import language as nl
from triptych.languages.nki.launching.measuring import MeasuredKernel
from triptych.languages.nki.tracing.tensors import NkiTensor


def double(a: NkiTensor) -> NkiTensor:
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(a), 2.0))
    return out


def measured(made: object) -> MeasuredKernel:
    assert isinstance(made, MeasuredKernel)
    return made


@pytest.mark.parametrize(
    "decorate", [nki.benchmark, nki.profile, nki_beta1.benchmark(warmup=2, iters=3), nki_beta1.profile]
)
def test_a_benchmark_models_a_time(decorate: Callable[[Callable[..., object]], object]) -> None:
    kernel = measured(decorate(double))
    a = random(128, 512)
    printed: list[str] = []
    with tt.profile(chip="trn2") as profile, redirecting(printed.append):
        same(cast(Array, kernel(a)), 2 * a)
    latency = kernel.benchmark_result.nc_latency
    assert latency.get_latency_percentile(50) == latency.get_latency_percentile(99)
    assert latency.seconds == profile.launches[-1].roofline.estimate_s
    assert kernel.benchmark_result.launch.counters.value("dma.load.bytes") == a.nbytes
    assert "us on AWS Trainium2 (modelled, not measured)" in "".join(printed)
    assert "modelled" in repr(latency)


def test_files_of_the_compiler_are_not_made() -> None:
    kernel = measured(nki_beta1.benchmark(save_neff_name="file.neff", save_trace_name="profile.ntff")(double))
    printed: list[str] = []
    with redirecting(printed.append):
        kernel(typing.tensor[[64, 32], nl.float32])
    assert "save_neff_name: triptych makes no NEFF" in "".join(printed)


def test_a_benchmark_that_was_not_called() -> None:
    kernel = measured(nki_beta1.benchmark(double))
    with pytest.raises(NkiError, match="was not called yet"):
        _ = kernel.benchmark_result
    with pytest.raises(NkiError, match="does not take warmups"):
        nki_beta1.benchmark(double, warmups=3)
    kernel(random(8, 8))
    with pytest.raises(NkiError, match="percentile 98; there are 0, 1, 10"):
        kernel.benchmark_result.nc_latency.get_latency_percentile(98)


def test_a_grid_shares_the_results() -> None:
    kernel = measured(nki_beta1.benchmark(double))
    kernel[(1,)](random(8, 8))
    assert kernel.benchmark_result.launch.grid == (1, 1, 1)


@pytest.mark.parametrize("decorate", [nki.baremetal, nki_beta1.baremetal(save_neff_name="a")])
def test_baremetal(decorate: Callable[..., Any]) -> None:
    a = random(8, 8)
    same(decorate(double)(a), 2 * a)


# Where tiles lie


def at(buffer: object, blocks: int = 1) -> Callable[[NkiTensor], NkiTensor]:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        held = nl.ndarray((blocks, nl.par_dim(32), 8), dtype=a.dtype, buffer=buffer)
        for block in nl.affine_range(blocks):
            held[block] = nl.load(a[nl.ds(32 * block, 32), :])
        for block in nl.affine_range(blocks):
            nl.store(out[nl.ds(32 * block, 32), :], nl.copy(held[block]))
        return out

    return kernel


@pytest.mark.parametrize(
    "buffer",
    [
        compiler.sbuf.auto_alloc(),
        compiler.sbuf.alloc(lambda block, partitions, size: (0, block[0] * size)),
        compiler.sbuf.mod_alloc(base_addr=64, num_free_tiles=(2,)),
        compiler.sbuf.mod_alloc(base_addr=0, num_par_tiles=(4,)),
        compiler.psum.mod_alloc(base_bank=2, num_bank_tiles=(4,)),
        compiler.psum.alloc(lambda block, partitions, size: (block[0], 0, 0)),
        compiler.psum.auto_alloc(),
    ],
)
def test_blocks_lie_where_they_are_put(buffer: object) -> None:
    a = random(128, 8)
    same(run_beta1(at(buffer, 4), a), a)


@pytest.mark.parametrize(
    "buffer",
    [
        compiler.sbuf.mod_alloc(base_addr=212_960),
        compiler.psum.mod_alloc(base_bank=6, num_bank_tiles=(4,)),
        compiler.sbuf.mod_alloc(base_addr=0, base_partition=32, num_par_tiles=(4,)),
    ],
)
def test_blocks_must_fit(buffer: object) -> None:
    with pytest.raises(NkiLimitError, match="at the address"):
        nki_beta1.jit(at(buffer, 4)).capture(np.zeros((128, 8), F32))


def test_methods_of_beta_1_s_tensor() -> None:
    @compiler.enable_stack_allocator
    @compiler.skip_middle_end_transformations
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, 1, 6), dtype=nl.int32, buffer=nl.shared_hbm)
        held = nl.load(a).assert_shape((8, 6))
        assert held.itemsize == 4
        nl.store(out, held.astype(nl.int32).expand_dims(1))
        return out

    a = 10 * random(8, 6)
    same(run_beta1(kernel, a), np.rint(a)[:, np.newaxis])
    with pytest.raises(NkiError, match=r"assert_shape expected \[8, 7\]"):
        nki_beta1.jit(of_another_shape).capture(a)


def of_another_shape(a: NkiTensor) -> NkiTensor:
    return a.assert_shape((8, 7))
