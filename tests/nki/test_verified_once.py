"""What one trace was found to keep is known to others of its kind alone: each rule is told in the next trace too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from one_kernel import tile

import triptych as tt
from triptych.core.errors import NkiError, TriptychError
from triptych.core.settings import scope
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.launching.kernel import Kernel
from triptych.languages.nki.tracing.tensors import NkiTensor

A = np.ones((32, 64), np.float32)
Body = Callable[[NkiTensor, NkiTensor], None]


def kernel_of(body: Body, compiled: Callable[..., Kernel] = nki.jit) -> Kernel:
    """`body(held, made)` between a load and a store."""

    @compiled
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        held, made = tile(*a.shape), tile(*a.shape)
        nisa.dma_copy(dst=held, src=a)
        nisa.memset(dst=made, value=0.0)
        body(held, made)
        nisa.dma_copy(dst=out, src=made)
        return out

    return kernel


def test_another_target() -> None:
    """A bias that is a number is NeuronCore-v3's."""

    def body(held: NkiTensor, made: NkiTensor) -> None:
        nisa.activation(dst=made, op=nl.exp, data=held, bias=1.0)

    for _ in range(2):
        with tt.profile(chip="trn2"):
            kernel_of(body).capture(A)
        with tt.profile(chip="trn1"), pytest.raises(NkiError, match=r"the bias 1\.0 is a number"):
            kernel_of(body).capture(A)


def test_the_other_generation() -> None:
    """Beta 1's DMA reads PSUM."""

    def body(held: NkiTensor, made: NkiTensor) -> None:
        sums = tile(32, 64, buffer=nl.psum)
        nisa.tensor_copy(dst=sums, src=held)
        nisa.dma_copy(dst=made, src=sums)

    for _ in range(2):
        kernel_of(body, nki_beta1.jit).capture(A)
        with pytest.raises(NkiError, match="requires HBM or SBUF tensors"):
            kernel_of(body).capture(A)


def test_another_grid() -> None:
    """Cores meet where there are two."""

    @nki.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        held = tile(*a.shape)
        nisa.dma_copy(dst=held, src=a)
        nisa.dma_copy(dst=out, src=held)
        nisa.core_barrier(data=out, cores=(0, 1))
        return out

    for _ in range(2):
        with tt.profile(chip="trn2"):
            kernel[2].capture(A)
            with pytest.raises(NkiError, match="requires LNC degree"):
                kernel.capture(A)


def test_another_first_partition() -> None:
    """Tiles of one shape, of which the rules look at where they were placed."""

    def placed(partition: int) -> Body:
        def body(held: NkiTensor, made: NkiTensor) -> None:
            other = nl.ndarray((32, 64), dtype=nl.float32, buffer=nl.sbuf, address=(partition, 65536))
            nisa.tensor_copy(dst=other, src=held)
            nisa.tensor_copy(dst=made, src=other)

        return body

    for _ in range(2):
        for partition in (0, 32, 64):
            kernel_of(placed(partition)).capture(A)
        with pytest.raises(NkiError, match="starting at partition 16"):
            kernel_of(placed(16)).capture(A)


def test_another_bank() -> None:
    """Of PSUM the rules look at where in a partition a tile begins."""

    def body(first: int) -> Body:
        def body(held: NkiTensor, made: NkiTensor) -> None:
            sums, left = tile(32, 1024, buffer=nl.psum), tile(32, 32)
            nisa.memset(dst=left, value=1.0)
            nisa.nc_matmul(dst=sums[:, first : first + 64], stationary=left, moving=held)
            nisa.tensor_copy(dst=made, src=sums[:, first : first + 64])

        return body

    for _ in range(2):
        for first in (0, 64, 512):
            kernel_of(body(first)).capture(A)
        with pytest.raises(TriptychError, match="bank"):
            kernel_of(body(480)).capture(A)


def test_what_leniency_takes_is_a_finding_each_time() -> None:
    """And refused again where there is none."""

    def body(held: NkiTensor, made: NkiTensor) -> None:
        nisa.tensor_copy(dst=made[0:16, :], src=held[8:24, :])

    for _ in range(2):
        with scope(nki_lenient=True), tt.profile() as report:
            kernel_of(body)(A)
        assert [one.check for one in report.launches[0].findings if "partition 8" in one.message] == ["nki.compiler"]
        with pytest.raises(NkiError, match="starting at partition 8"):
            kernel_of(body).capture(A)
