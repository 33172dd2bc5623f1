"""Launches that are the same, said once."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, cast

import pytest

from launches import VEC_ADD, finding, gpu_launch, line, nki_launch
from triptych.core.checks import Severity
from triptych.core.counters import counters_of
from triptych.core.launches import Account, LaunchRecord
from triptych.core.plan import LaunchShape
from triptych.core.source import SourceLocation
from triptych.report.groups import groups_of, identity


def test_groups_keep_the_order_of_their_first_launches() -> None:
    groups = groups_of([gpu_launch(), nki_launch(), gpu_launch(), gpu_launch("other"), nki_launch()])
    assert [group.numbers for group in groups] == [(1, 3), (2, 5), (4,)]
    assert [group.launch.kernel for group in groups] == ["vec_add", "vec_add", "other"]


def test_what_tells_launches_apart() -> None:
    changed = [
        gpu_launch(),
        gpu_launch(chip="h200"),
        gpu_launch(target="sm_80"),
        gpu_launch(values={**VEC_ADD, "barriers": 1}),
        gpu_launch(findings=(finding(Severity.NOTICE),)),
        replace(gpu_launch(), remarks=("A remark.",)),
        gpu_launch(lines=(line("k.cu", 1, VEC_ADD),)),
        gpu_launch(lines=(line("k.cu", 2, VEC_ADD),)),
    ]
    assert len(groups_of(changed)) == len(changed)


def other_value(value: object) -> object:
    """A value of the same type that is another one."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return f"other {value}"
        case LaunchShape(grid):
            return LaunchShape(grid, cooperative=True)
        case None:
            return SourceLocation("x.py", 3)
        case Account():
            return Account.of(counters_of("gpu", {"barriers": 1}))
        case tuple():
            return (*cast("tuple[object, ...]", value), "other")
        case _:
            raise TypeError(type(value))


@pytest.mark.parametrize("name", [field.name for field in fields(LaunchRecord) if field.name != "findings"])
def test_a_launch_is_told_apart_by_every_field_of_its_record(name: str) -> None:
    launch = gpu_launch()
    change: dict[str, Any] = {name: other_value(getattr(launch.record, name))}
    changed = replace(launch, record=replace(launch.record, **change))
    assert identity(changed) != identity(launch)
    assert identity(gpu_launch()) == identity(launch)


def test_labels() -> None:
    one, other = gpu_launch(), gpu_launch("other")
    assert [group.label for group in groups_of([one, one, one, other, one])] == ["1–3, 5", "4"]
    first, second = groups_of([one, other] * 500)
    assert first.label == "1, 3, 5, 7, 9, 11, … (500 launches)"
    assert second.label == "2, 4, 6, 8, 10, 12, … (500 launches)"
