"""What is wrong with a kernel's results, as a person wants to know it: how many elements, and the worst of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from triptych.operators.operator import Outputs


@dataclass(frozen=True, slots=True)
class Verdict:
    """Results against what must come out. As text it is one line."""

    error: float
    """The largest share of what is allowed: right up to 1."""
    wrong: int
    """How many elements have more."""
    elements: int
    """How many there are, of all outputs."""
    output: str
    """The output that has the worst element."""
    index: tuple[int, ...]
    """Where it is there."""
    found: float
    expected: float
    allowed: float
    """How far `found` may be from `expected`."""

    @property
    def right(self) -> bool:
        """Whether every element is within its budget."""
        return self.wrong == 0

    def __str__(self) -> str:
        """Whether it is right, and the worst element."""
        place = f"{self.output}[{', '.join(map(str, self.index))}]"
        if self.right:
            return f"right: the largest error is {self.error:.3g} of what is allowed, at {place}"
        return (
            f"wrong: {self.wrong} of {self.elements} elements; worst is {place} = {self.found:.7g},"
            f" expected {self.expected:.7g} ± {self.allowed:.2g}"
        )


def verdict_of(names: Sequence[str], found: Outputs, expected: Outputs, allowed: Outputs, shares: Outputs) -> Verdict:
    """The verdict on results, from each element's share of what it is allowed.

    Args:
        names: of the outputs.
        found: results, of which at least one has an element.
        expected: what must come out.
        allowed: the budget.
        shares: each element's error, as a multiple of the budget.
    """
    most = [float(one.max(initial=0.0)) for one in shares]
    at = int(np.argmax(most))
    index = tuple(int(one) for one in np.unravel_index(int(shares[at].argmax()), shares[at].shape))
    return Verdict(
        error=most[at],
        wrong=sum(int(np.count_nonzero(one > 1)) for one in shares),
        elements=sum(one.size for one in shares),
        output=names[at],
        index=index,
        found=float(found[at][index]),
        expected=float(expected[at][index]),
        allowed=float(np.broadcast_to(allowed[at], shares[at].shape)[index]),
    )
