"""All experiments, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Mapping

from triptych.core.errors import UnknownName
from triptych.memory_wall.attention import MEMORY, STANDARD, TRAFFIC
from triptych.memory_wall.experiment import Experiment
from triptych.memory_wall.fusion import FUSION
from triptych.memory_wall.overlap import OVERLAP
from triptych.memory_wall.warps import BANKS, COALESCING, DIVERGENCE

EXPERIMENTS: Mapping[str, Experiment] = {
    one.name: one for one in (FUSION, STANDARD, TRAFFIC, MEMORY, COALESCING, DIVERGENCE, BANKS, OVERLAP)
}
"""By name."""


def experiment(name: str) -> Experiment:
    """The experiment of that name.

    Raises:
        UnknownName: where there is none.
    """
    if name not in EXPERIMENTS:
        raise UnknownName.of("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
