"""log Σ exp(logits) - the target's logit, of each row.

- Tiling: a program takes a row, BLOCK columns at a time.
- Memory hierarchy: logits are read once: the largest one and the sum of exponentials below it are found together; no
  probability is stored.
- Mapping: a lane keeps a maximum and a sum of its own columns; lanes meet once, behind the loop.
- Overlap: a step's loads do not wait for the sums before; a multiprocessor's other programs have other rows.
"""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# ruff: noqa: ANN001, ANN201
# Triton's language exists inside kernels only: its operators have no types that Python knows.

from __future__ import annotations

import triton
import triton.language as tl

from triptych.kernels.arrays import AnyArray, output
from triptych.kernels.problems import arguments
from triptych.kernels.triton.machine import machine
from triptych.kernels.triton.rows import block_of
from triptych.kernels.triton.softmax import LOWEST
from triptych.operators.cross_entropy import IGNORED


@triton.jit
def cross_entropy_kernel(logits, targets, loss, columns, IGNORED: tl.constexpr, BLOCK: tl.constexpr):
    """A row a program."""
    row = tl.program_id(0)
    logits += row.to(tl.int64) * columns
    target = tl.load(targets + row)
    if target == IGNORED:
        tl.store(loss + row, 0.0)
    else:
        largest, total = tl.full((BLOCK,), LOWEST, tl.float32), tl.zeros((BLOCK,), tl.float32)
        for start in range(0, columns, BLOCK):
            places = start + tl.arange(0, BLOCK)
            values = tl.load(logits + places, mask=places < columns, other=float("-inf")).to(tl.float32)
            higher = tl.maximum(largest, values)
            total = total * tl.exp(largest - higher) + tl.exp(values - higher)
            largest = higher
        most = tl.max(largest, 0)
        logarithm = tl.log(tl.sum(total * tl.exp(largest - most), 0))
        tl.store(loss + row, logarithm + (most - tl.load(logits + target).to(tl.float32)))


def cross_entropy(logits: AnyArray, targets: AnyArray) -> AnyArray:
    """The losses `(rows)` in f32 of logits, `(rows, columns)`, and each row's target, a column or IGNORED, of s64.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    axes, _ = arguments("cross_entropy", logits=logits, targets=targets)
    rows, columns = axes["rows"], axes["columns"]
    loss = output(logits, (rows,), "f32")
    with machine():
        cross_entropy_kernel[(rows,)](logits, targets, loss, columns, IGNORED=IGNORED, BLOCK=block_of(columns))
    return loss
