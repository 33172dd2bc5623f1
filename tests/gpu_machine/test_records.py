"""The structures that Python and generated code share: each number has a place of its own."""

from __future__ import annotations

import pytest

from triptych.gpu.lower.memory import WINDOWS
from triptych.gpu.lower.records import MEMORY_SIZES, Context, CountLayout, Misuse, MisuseKind, Site, Slot


def test_each_count_has_a_place_of_its_own() -> None:
    layout = CountLayout(executions=3, guards=2, namings=5, sites=4)
    places = [
        *(place(number) for number in range(3) for place in (layout.warps, layout.lanes, layout.divergent)),
        *(layout.guarded(number) for number in range(2)),
        *(layout.misuse(number) for number in range(5)),
        *(layout.site(number, field) for number in range(4) for field in Site.names()),
    ]
    assert sorted(places) == list(range(layout.size))


def test_sites_are_the_last_counts_record_after_record() -> None:
    layout = CountLayout(executions=1, guards=0, namings=0, sites=2)
    assert layout.site(0) == 3
    assert layout.site(1) - layout.site(0) == len(Site.names())
    assert layout.size - layout.site(0) == 2 * Site.size() // 8


def test_a_launch_that_counts_nothing_has_no_counts() -> None:
    assert CountLayout(0, 0, 0, 0).size == 0


def test_the_context_has_what_a_slot_keeps_of_a_block() -> None:
    assert set(Slot.names()) < set(Context.names())


def test_a_fault_closes_all_memory_that_windows_open() -> None:
    assert {window.size for window in WINDOWS.values()} | {"storage_count"} == set(MEMORY_SIZES)


@pytest.mark.parametrize(
    "misuse", [Misuse(0, 0, MisuseKind.OUTSIDE, 0, 0), Misuse((1 << 45) + 3, 31, MisuseKind.SOURCE, 31, 17)]
)
def test_a_misuse_is_one_number_above_0_in_the_order_of_misuses(misuse: Misuse) -> None:
    number = 0
    for name, bits in Misuse.BITS.items():
        number = number << bits | getattr(misuse, name)
    assert 0 < number < 1 << 63
    assert Misuse.of(number) == misuse
    assert Misuse.of(number - 1) < misuse < Misuse.of(number + 1)
