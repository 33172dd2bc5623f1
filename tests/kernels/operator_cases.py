"""A kernel's results, judged by the operator that it carries out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

import triptych as tt
from triptych.operators.case import case
from triptych.operators.catalogue import operator


def check_operator(function: Callable[..., Any], name: str, dtype: str, *sizes: str, chip: str = "h100") -> None:
    """At each size, for inputs of each distribution: no error beyond the budget, and no finding."""
    for size in sizes:
        options = {"causal": True} if operator(name).size(size).values.get("causal") else {}
        for distribution in operator(name).distributions:
            one = case(operator(name), size, dtype, distribution.name)
            with tt.profile(chip=chip) as profile:
                result = function(*one.inputs.values(), **options)
            outputs = cast("tuple[Any, ...]", result if isinstance(result, tuple) else (result,))
            assert [finding.message for launch in profile.launches for finding in launch.findings] == []
            error = one.error(tuple(np.asarray(array) for array in outputs))
            assert error <= 1, (size, distribution.name, error)
