"""Meanings that numpy computes slowly, as native code: the same results, by a loop for each.

Nothing is imported before it is needed. The exponential and the sums are numpy's until a tile is large enough that
native code, once made, is worth the time; a product's order of addition numpy does not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triptych.core.late_imports import importing

if TYPE_CHECKING:
    from triptych.neuron.isa.compiled.library import exp, multiply, reduce_rows
else:
    __getattr__ = importing(__name__, {"library": "exp multiply reduce_rows"})

WORTHWHILE = 1 << 14
"""Elements of an array from which on the functions here are called: numpy takes 0.05 to 0.15 ms for so many."""

__all__ = ["WORTHWHILE", "exp", "multiply", "reduce_rows"]
