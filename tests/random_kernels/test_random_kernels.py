"""A few random kernels and damaged texts; `campaign.py` and `mutate.py` have many."""

from __future__ import annotations

from pathlib import Path

import pytest
from arithmetic import ARITHMETIC
from compare import run_and_compare
from emit import random_kernel, text_of
from exchanges import COPY_GROUPS
from grammar import RandomKernel, lines_of
from minimise import minimise
from mutate import Given, mutant, outcome_of, texts_of_corpus

from triptych.gpu.isa import TABLE, Effect

WRITTEN = frozenset(
    (
        Effect.LOAD, Effect.LOAD_MATRIX, Effect.STORE, Effect.ATOMIC, Effect.COPY, Effect.ORDER, Effect.WARP,
        Effect.WARP_BARRIER, Effect.BLOCK_BARRIER, Effect.BLOCK_REDUCTION, Effect.BLOCK_ARRIVAL, Effect.BRANCH,
        *COPY_GROUPS, Effect.SWITCH, Effect.CALL, Effect.RETURN, Effect.END, Effect.TRAP, Effect.MULTIPLY,
    )
)  # fmt: skip
"""What the generator has statements for; rows that only compute need none of their own."""
OF_CLUSTERS = frozenset((Effect.CLUSTER_ARRIVAL, Effect.CLUSTER_WAIT))
"""The generator's kernels are launched without clusters."""
WITH_TESTS_OF_THEIR_OWN = frozenset(
    (
        Effect.LOAD_FRAGMENT, Effect.STORE_FRAGMENT, Effect.MBARRIER, Effect.MBARRIER_REMOTE, Effect.MBARRIER_TEST,
        Effect.MBARRIER_COPIES, Effect.COMMIT_BULK, Effect.AWAIT_BULK, Effect.STACK,
        *(effect for effect in Effect if effect.completes or effect.copies_boxes), Effect.COPY_MAP, Effect.STORE_FIELD,
        Effect.MULTIPLY_GROUP, Effect.FENCE_PRODUCTS, Effect.COMMIT_PRODUCTS, Effect.AWAIT_PRODUCTS,
    )
)  # fmt: skip
"""`tests/gpu_differential`: `test_wmma.py`, `test_wgmma.py`, `test_mbarriers.py`, `test_bulk_copies.py`,
`test_tensor_copies.py`, `test_stack.py`."""
OF_LATER_TARGETS = frozenset((Effect.STORE_MATRIX,))
"""They are of sm_80."""


def test_the_generator_knows_every_effect() -> None:
    assert {row.effect for row in TABLE} - {
        Effect.NONE
    } == WRITTEN | OF_CLUSTERS | OF_LATER_TARGETS | WITH_TESTS_OF_THEIR_OWN
    assert {row.effect for row in ARITHMETIC} == {Effect.NONE}


def test_a_seed_gives_one_kernel() -> None:
    assert text_of(random_kernel(7)) == text_of(random_kernel(7))
    assert text_of(random_kernel(7)) != text_of(random_kernel(8))


@pytest.mark.parametrize("seed", [2, 3, 5])
def test_both_executors_agree(seed: int) -> None:
    ran = run_and_compare(random_kernel(seed, stretches=2))
    assert ran.warps > 100
    assert ran.threads > ran.warps


def test_the_smallest_kernel_that_fails() -> None:
    """A made-up fault, of any instruction `ld.global` in a body: what is left has one, and next to nothing else."""

    def fails(kernel: RandomKernel) -> bool:
        return any("ld.global" in line for routine in kernel.routines for line in lines_of(routine.body))

    kernel = next(k for k in map(random_kernel, range(40)) if fails(k) and len(k.routines) > 1)
    smallest = minimise(kernel, fails)
    (left,) = [statement for routine in smallest.routines for statement in routine.body]
    assert fails(smallest)
    assert not left.bodies


def test_damaged_ptx_runs_or_is_refused(tmp_path: Path) -> None:
    texts = [text for text in texts_of_corpus() if len(text) < 3000]
    outcomes = [outcome_of(Given(mutant(seed, texts), launches=False, folder=str(tmp_path))) for seed in range(40)]
    assert [outcome for outcome in outcomes if outcome.startswith(" ")] == []
    assert "PtxSyntaxError" in outcomes
