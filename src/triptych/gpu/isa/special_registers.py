"""Special registers (PTX manual, chapter 10): their types, and those whose value the machine's own design gives."""

from __future__ import annotations

from collections.abc import Mapping

from triptych.gpu.isa.types import PRED, U32, U64, ScalarType

CONSTANT_REGISTERS: Mapping[str, int] = {
    # The machine has one multiprocessor and runs one grid: blocks differ by %ctaid alone.
    "%smid": 0, "%nsmid": 1, "%gridid": 0,
    # Without clusters each block is one of its own.
    **{f"%cluster_ctaid.{axis}": 0 for axis in "xyz"}, **{f"%cluster_nctaid.{axis}": 1 for axis in "xyz"},
    "%cluster_ctarank": 0, "%cluster_nctarank": 1, "%is_explicit_cluster": 0,
    # A driver fills these in for cooperative launches and the like.
    **{f"%envreg{number}": 0 for number in range(32) if number not in (1, 2)},
}  # fmt: skip
"""Those that are the same for all threads of all launches."""
ALIASES: Mapping[str, str] = {
    f"{cluster}.{axis}": f"{block}.{axis}"
    for cluster, block in (("%clusterid", "%ctaid"), ("%nclusterid", "%nctaid"))
    for axis in "xyz"
}
"""Those that hold what another holds: a cluster is a block."""
CLOCK_REGISTERS: Mapping[str, int] = {
    "%clock": 0, "%clock_hi": 32, "%clock64": 0, "%globaltimer": 0, "%globaltimer_lo": 0, "%globaltimer_hi": 32,
}  # fmt: skip
"""Clocks, and the bit of the whole clock from which each is cut. The machine has no time: a warp's clock starts at 0
with its block and moves on when it is read, so that it never stands still, and runs can be repeated."""
CLOCK_STEP = 64
"""How far a clock moves when it is read."""
_TYPES: Mapping[str, ScalarType] = {
    "%clock64": U64, "%globaltimer": U64, "%gridid": U64, "%is_explicit_cluster": PRED,
}  # fmt: skip


def special_type(name: str) -> ScalarType:
    """A special register's type."""
    return _TYPES.get(name, U32)
