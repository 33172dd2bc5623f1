"""Double buffering: movement and arithmetic one after the other, and at once, by a NeuronCore's simulated timeline."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from triptych.execution.launch_report import LaunchReport
from triptych.memory_wall.experiment import CHIPS, Axis, Experiment, Point, launches
from triptych.memory_wall.small_kernels import nki_buffered

_COLUMNS = 2048
_PLACES = (1, 2, 3)
_PASSES = (1, 2, 3, 4, 6, 8, 12, 16)
_QUICK_PASSES = (1, 8)


def _launch(tiles: int, passes: int, places: int) -> LaunchReport:
    x = np.ones((128 * tiles, _COLUMNS), np.float32)
    (launch,) = launches(CHIPS["NKI"], lambda: nki_buffered(x, passes, places))
    return launch


def _seconds(tiles: int, passes: int, places: int) -> float:
    """What one more tile takes, once all are under way."""
    longer, shorter = (_launch(count, passes, places).roofline.estimate_s for count in (2 * tiles, tiles))
    return (longer - shorter) / tiles


def _run(quick: bool) -> Iterator[Point]:
    tiles = 4 if quick else 12
    timing = _launch(tiles, 1, 1).roofline.timing
    assert timing is not None
    moving, streaming, computing = _seconds(tiles, 0, 1), _seconds(tiles, 0, 3), timing.busy["vector"] / tiles
    for places in _PLACES:
        for passes in _QUICK_PASSES if quick else _PASSES:
            alone = moving + passes * computing
            formula = alone if places == 1 else max(streaming, passes * computing, alone / places)
            series = f"{places} place{'s' * (places > 1)} in SBUF"
            yield Point(series, passes, _seconds(tiles, passes, places), formula)


OVERLAP = Experiment(
    name="double_buffering",
    title="Movement and arithmetic at once",
    formula="A tile takes movement + arithmetic where tiles have one place, and the longer of the two where they have"
    " enough: max(movement, arithmetic, (movement + arithmetic) / places)",
    measured="NKI: tiles of 128 × 2048 of f32 come to SBUF, p passes of the Vector engine go over them, and they leave"
    " again; tiles take turns in 1, 2 or 3 places. The time of one more tile, by the simulated timeline of `trn2`:"
    " modelled, not counted. Movement alone and arithmetic alone are taken from it too.",
    finding="Two places, the text-book's double buffer, are not enough: a place is taken from the start of a tile's"
    " load to the end of its store, three steps, so that where movement and arithmetic take about as long as each other"
    " two places are a fifth slower than three. Bytes and FLOPs are the same in all of it: no counter shows overlap."
    " GPUs have no timeline: an estimate there is the longest roof, as if all overlapped, whatever the kernel does.",
    within=0.15,
    x=Axis("passes over a tile", logarithmic=False),
    y=Axis("time of a tile", "s", logarithmic=False),
    run=_run,
)
