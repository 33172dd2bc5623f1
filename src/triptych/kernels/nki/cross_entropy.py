"""log Σ exp(logits) - the target's logit, of each row.

- Tiling: 128 rows to the partitions, COLUMNS of them at a time.
- Memory hierarchy: logits come once: a maximum, a sum of exponentials below it and the target's logit are carried
  along, and no probability is stored.
- Mapping: GPSIMD numbers the columns; the Vector engine picks the target's by comparison, as engines have no address a
  partition, and finds maxima; the Scalar engine takes exponentials and sums them up in one instruction.
- Overlap: the Vector engine is the one that all others wait for; rows do not depend on each other.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201, ANN204
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

from triptych.kernels.arrays import AnyArray, checked, lower_halves
from triptych.kernels.nki.tiles import COLUMNS, PARTITIONS, cuts, length, loaded, sbuf
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki
from triptych.operators.cross_entropy import IGNORED

INTEGERS = ("s64", "s32", "s16", "s8")
LOWEST = -3e38
"""Below all logits: a maximum of none."""


class Losses:
    """What is carried along for each row: the largest logit, the sum of exponentials below it, the target's logit."""

    def __init__(self, count):
        """Of no columns."""
        self.most, self.sums, self.picked = (sbuf((count, 1)) for _ in range(3))
        nisa.memset(dst=self.most, value=LOWEST)
        nisa.memset(dst=self.sums, value=0.0)
        nisa.memset(dst=self.picked, value=0.0)

    def take(self, tile, places, targets):
        """Takes the logits of some columns, whose numbers `places` holds in each partition."""
        column = (tile.shape[0], 1)
        largest, negated, kept, sums, found = (sbuf(column) for _ in range(5))
        chosen, powers = sbuf(tile.shape, nl.uint8), sbuf(tile.shape)
        zeros = sbuf(tile.shape, tile.dtype)
        nisa.memset(dst=zeros, value=0.0)
        nisa.tensor_scalar(dst=chosen, data=places, op0=nl.equal, operand0=targets)
        nisa.tensor_copy_predicated(dst=zeros, src=tile, predicate=chosen)  # a product would make NaN of 0 · ∞
        nisa.tensor_reduce(dst=found, op=nl.add, data=zeros, axis=1)
        nisa.tensor_tensor(dst=self.picked, data1=self.picked, data2=found, op=nl.add)
        nisa.tensor_reduce(dst=largest, op=nl.maximum, data=tile, axis=1)
        nisa.tensor_tensor(dst=largest, data1=largest, data2=self.most, op=nl.maximum)
        nisa.tensor_scalar(dst=negated, data=largest, op0=nl.multiply, operand0=-1.0)
        nisa.activation(dst=kept, op=nl.exp, data=self.most, bias=negated)
        nisa.activation_reduce(dst=powers, op=nl.exp, data=tile, bias=negated, reduce_op=nl.add, reduce_res=sums)
        nisa.scalar_tensor_tensor(
            dst=self.sums, data=self.sums, op0=nl.multiply, operand0=kept, op1=nl.add, operand1=sums
        )  # fmt: skip
        self.most = largest

    def result(self, targets):
        """The losses, 0 where a row's target is IGNORED."""
        distance, losses, counted = (sbuf(self.sums.shape) for _ in range(3))
        nisa.activation(dst=losses, op=nl.log, data=self.sums)
        nisa.tensor_tensor(dst=distance, data1=self.most, data2=self.picked, op=nl.subtract)
        nisa.tensor_tensor(dst=losses, data1=losses, data2=distance, op=nl.add)
        nisa.tensor_scalar(dst=counted, data=targets, op0=nl.not_equal, operand0=float(IGNORED))
        nisa.tensor_tensor(dst=losses, data1=losses, data2=counted, op=nl.multiply)
        return losses


@nki.jit
def cross_entropy_kernel(logits, targets):
    """The losses (rows,) in f32 of logits, (rows, columns), and each row's target, a column or IGNORED, of int32."""
    count, columns = logits.shape
    loss = nl.ndarray((count,), dtype=nl.float32, buffer=nl.shared_hbm)
    places = sbuf((min(count, PARTITIONS), min(columns, COLUMNS)))
    nisa.iota(dst=places, pattern=[[1, places.shape[1]]])
    for rows in cuts(count, PARTITIONS):
        losses, wanted = Losses(length(rows)), sbuf((length(rows), 1))
        nisa.dma_copy(dst=wanted, src=targets[rows].expand_dim(1))
        for part in cuts(columns, COLUMNS):
            here = sbuf((length(rows), 1))
            nisa.tensor_scalar(dst=here, data=wanted, op0=nl.subtract, operand0=float(part.start))
            losses.take(loaded(logits[rows, part]), places[0 : length(rows), 0 : length(part)], here)
        nisa.dma_copy(dst=loss[rows].expand_dim(1), src=losses.result(wanted))
    return loss


def cross_entropy(logits: AnyArray, targets: AnyArray) -> AnyArray:
    """The kernel on targets of any integer type; of 64 bits, which a NeuronCore lacks, it takes the lower halves."""
    words = checked("cross_entropy", "targets", targets, "rows", INTEGERS).dtype.bytes // 4
    return cross_entropy_kernel(logits, lower_halves(targets) if words == 2 else targets)
