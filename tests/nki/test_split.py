"""Instructions of more free axes than the engines walk: Beta 1 has several of them, `import nki` refuses."""

from __future__ import annotations

import numpy as np
import pytest
from one_kernel import filled, random, refused, run_beta1, same, tile

import triptych as tt
from triptych.core.errors import NkiError, NkiLimitError
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki_beta1
from triptych.languages.nki.tracing.tensors import NkiTensor


def every_other(a: NkiTensor) -> NkiTensor:
    """2 a + 1 of every second element along five axes; nothing of the others."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    held, made = nl.load(a), nl.zeros(a.shape, a.dtype)
    p, *free = nl.mgrid[0:4, 0:2, 0:3, 0:2, 0:2, 0:2]
    index = (p, *(2 * one for one in free))
    made[index] = nisa.tensor_scalar(held[index], np.multiply, 2.0, op1=np.add, operand1=1.0)
    nl.store(out, made)
    return out


def test_five_axes_are_split_along_the_shortest() -> None:
    a = random(4, 4, 6, 4, 4, 4)
    with tt.profile(chip="trn2") as profile:
        found = run_beta1(every_other, a)
    expected = np.zeros_like(a)
    part = (slice(None), *[slice(None, None, 2)] * 5)
    expected[part] = 2 * a[part] + 1
    same(found, expected)
    counters = profile.launches[-1].counters
    assert counters["instructions.vector"].value + counters["instructions.scalar"].value == 3  # the zeros, two halves


def test_seven_axes_of_a_copy() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((4, 64), dtype=a.dtype, buffer=nl.shared_hbm)
        held = nl.load(a)
        p, *free = nl.mgrid[0:4, 0:2, 0:2, 0:2, 0:2, 0:2, 0:2]
        nl.store(out, nl.copy(held[(p, *(2 * one for one in free))]).reshape((4, 64)))
        return out

    a = random(4, *[4] * 6)
    with tt.profile(chip="trn2") as profile:
        found = run_beta1(kernel, a)
    same(found, a[(slice(None), *[slice(None, None, 2)] * 6)].reshape(4, 64))
    assert profile.launches[-1].counters["instructions.scalar"].value == 4


def test_what_makes_no_element_apart_is_refused() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((4, 1), dtype=a.dtype, buffer=nl.shared_hbm)
        held = nl.load(a)
        p, *free = nl.mgrid[0:4, 0:2, 0:2, 0:2, 0:2, 0:2]
        nl.store(out, nl.sum(held[(p, *(2 * one for one in free))], axis=[1, 2, 3, 4, 5]).reshape((4, 1)))
        return out

    with pytest.raises(NkiLimitError, match="is walked along 5 free axes; the limit is 4") as caught:
        nki_beta1.jit(kernel).capture(random(4, *[4] * 5))
    assert caught.value.where is not None
    assert "nl.sum(held" in caught.value.where.text


def test_the_current_generation_refuses() -> None:
    def body() -> None:
        source = filled(4, 1024).ap([[1024, 4], *[[2 * 4**at, 2] for at in reversed(range(5))]])
        nisa.tensor_copy(tile(4, 32), source)

    refused(body, NkiError, "walked along 5 free axes")
