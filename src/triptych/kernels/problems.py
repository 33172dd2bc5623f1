"""What arguments of the kernels' functions ask for, checked: a product of matrices, and attention."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from triptych.core.errors import ArgumentError
from triptych.kernels.arrays import AnyArray, checked

HALVES = ("f16", "bf16")


def product(name: str, a: AnyArray, b: AnyArray, dtypes: Collection[str] = HALVES) -> tuple[int, int, int, str]:
    """M, n, k and the element type of A × B, where A is `(m, k)` and B is `(k, n)`.

    Args:
        name: the function's, for messages.
        a: an array of numpy, torch or triptych.
        b: likewise.
        dtypes: names of the element types that the function takes.

    Raises:
        ArgumentError: where the arrays are no such matrices.
    """
    left, right = (checked(name, *one, dtypes) for one in (("a", a, "m k"), ("b", b, "k n")))
    (m, k), (rows, n) = left.shape, right.shape
    if k != rows or left.dtype != right.dtype:
        raise ArgumentError(
            f"{name}: a is {left.dtype.name}[{m}, {k}] and b is {right.dtype.name}[{rows}, {n}];"
            " expected one element type, and as many columns of a as rows of b"
        )
    return m, n, k, left.dtype.name


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention of q on k and v."""

    batch: int
    heads: int
    n: int
    """Queries of a head."""
    d: int
    heads_kv: int
    """Heads of k and v, each for `group` neighbouring ones of q."""
    n_kv: int
    """Keys of a head."""
    dtype: str
    ahead: int
    """How many keys behind its own number a query sees."""
    scale: float
    """Of the scores."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Q's and the output's."""
        return self.batch, self.heads, self.n, self.d

    @property
    def group(self) -> int:
        """Heads of q that share one of k and v."""
        return self.heads // self.heads_kv

    @classmethod
    def of(cls, name: str, q: AnyArray, k: AnyArray, v: AnyArray, causal: bool, scale: float | None) -> Attention:
        """What the arguments of a function of that name ask for.

        Args:
            name: the function's, for messages.
            q: `(batch, heads, n, d)`, dense, f16 or bf16; d is 64 or 128.
            k: `(batch, heads_kv, n_kv, d)`, likewise; heads is a multiple of heads_kv.
            v: likewise.
            causal: whether a query sees no keys behind its own, the last query's being the last key.
            scale: of the scores, above 0; 1 / √d where None.

        Raises:
            ArgumentError: where they do not fit.
        """
        axes = "batch heads n d"
        handles = [checked(name, *one, axes, HALVES) for one in (("q", q), ("k", k), ("v", v))]
        (batch, heads, n, d), keys, values = (handle.shape for handle in handles)
        heads_kv, n_kv = keys[1:3]
        what = ", ".join(f"{key} {one.dtype.name}{list(one.shape)}" for key, one in zip("qkv", handles, strict=True))
        if keys != values or (keys[0], keys[3]) != (batch, d) or len({one.dtype for one in handles}) > 1:
            raise ArgumentError(f"{name}: got {what}; expected k and v alike, and q's batch, d and element type")
        if d not in (64, 128):
            raise ArgumentError(f"{name}: got {what}; expected d = 64 or 128")
        if heads % heads_kv:
            raise ArgumentError(f"{name}: got {what}; expected heads of q to be a multiple of those of k and v")
        if causal and n_kv < n:
            raise ArgumentError(f"{name}: got {what}; with causal, expected at least as many keys as queries")
        factor = 1 / math.sqrt(d) if scale is None else scale
        if not 0 < factor < math.inf:
            raise ArgumentError(f"{name}: scale is {scale}; expected a finite number above 0")
        ahead = n_kv - n if causal else n_kv
        return cls(batch, heads, n, d, heads_kv, n_kv, handles[0].dtype.name, ahead, factor)
