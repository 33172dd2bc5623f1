"""The device's generators: a seed and an offset as CUDA's have them, over the numbers that the host draws."""

# torch's own values are `Any` here.
# ruff: noqa: ANN401
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

torch: Any = import_module("torch")


def words(generator: Any) -> list[int]:
    """The seed and the offset."""
    state = generator.get_state()
    assert (state.dtype, state.numel(), state.is_cuda) == (torch.uint8, 16, False)
    return state.view(torch.int64).tolist()


def drawn() -> list[float]:
    return torch.rand(3, device="cuda").tolist()


@pytest.fixture
def generator(active: None) -> Any:
    torch.manual_seed(7)
    return torch.cuda.default_generators[0]


def test_draws_move_the_offset(generator: Any) -> None:
    assert words(generator) == words(generator) == [7, 0]
    drawn()
    assert words(generator) == words(generator) == [7, 4]
    drawn()
    drawn()
    assert generator.get_offset() == 8, "drawn since it was last looked at"


def test_a_state_can_be_gone_back_to(generator: Any) -> None:
    first = torch.cuda.get_rng_state()
    one = drawn()
    second = torch.cuda.get_rng_state()
    two = drawn()
    for state, numbers in ((second, two), (first, one), (second, two)):
        torch.cuda.set_rng_state(state)
        assert drawn() == numbers
    with torch.random.fork_rng(devices=[0]):
        drawn()
    after = drawn()
    torch.cuda.set_rng_state(second)
    drawn()
    assert drawn() == after


def test_an_offset_that_a_library_sets_names_a_state(generator: Any) -> None:
    state = generator.get_state()
    state.view(torch.int64)[1] += 400
    generator.set_state(state)
    assert words(generator) == [7, 400]
    numbers = drawn()
    assert words(generator) == [7, 404]
    generator.set_offset(400)
    assert drawn() == numbers
    torch.cuda.manual_seed(7)
    assert words(generator) == [7, 0]
    assert drawn() != numbers


def test_seeds_of_either_side_count(generator: Any) -> None:
    numbers = drawn()
    torch.manual_seed(7)
    assert words(generator) == [7, 0]
    assert drawn() == numbers
    torch.cuda.manual_seed_all(2**64 - 1)
    assert words(generator) == [-1, 0]
    assert torch.cuda.initial_seed() == generator.initial_seed() == 2**64 - 1
    assert generator.seed() == torch.initial_seed()


def test_a_generator_of_its_own(generator: Any) -> None:
    own = torch.Generator(device="cuda")
    assert isinstance(own, torch.Generator)
    assert own.device == torch.device("cuda", 0)
    one = torch.randn(3, device="cuda", generator=own.manual_seed(3))
    assert words(own) == [3, 4]
    assert words(generator) == [7, 0]
    assert torch.equal(torch.empty(3, device="cuda").normal_(generator=own.manual_seed(3)), one)


def test_a_state_of_another_size_is_refused(generator: Any) -> None:
    with pytest.raises(RuntimeError, match="wrong size"):
        generator.set_state(torch.get_rng_state())
