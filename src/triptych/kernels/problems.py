"""What arguments of the kernels' functions ask for, checked against the operators that they carry out."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from triptych.core.errors import ArgumentError
from triptych.core.handles import Handle
from triptych.kernels.arrays import AnyArray, checked
from triptych.operators import operator

HALVES = ("f16", "bf16")
FLOATS = ("f32", *HALVES)


def alike(name: str, dtypes: Collection[str] = FLOATS, **arrays: AnyArray) -> tuple[int, str]:
    """How many elements arrays of one shape have, and of which type.

    Args:
        name: the function's, for messages.
        dtypes: names of the element types that the function takes.
        arrays: by the arguments' names.

    Raises:
        ArgumentError: where shapes or element types differ, or the function does not take them.
    """
    handles = {key: checked(name, key, array, None, dtypes) for key, array in arrays.items()}
    first = next(iter(handles.values()))
    if any((one.shape, one.dtype) != (first.shape, first.dtype) for one in handles.values()):
        raise ArgumentError(f"{name}: got {_described(handles)}; expected one shape and element type")
    return first.size, first.dtype.name


def arguments(
    name: str, dtypes: Collection[str] = FLOATS, of: str = "", **arrays: AnyArray
) -> tuple[dict[str, int], str]:
    """The sizes of an operator's axes and its type T, which its inputs' arrays have.

    Args:
        name: the function's, for messages.
        dtypes: names of the element types T that the function takes.
        of: the operator's; the function's own where empty.
        arrays: by the names of the operator's inputs, all or some.

    Raises:
        ArgumentError: where the arrays are no such inputs, or the function does not take T.
    """
    declared = operator(of or name)
    declarations = {one.name: one for one in declared.inputs}
    inputs = {key: declarations[key] for key in arrays}
    handles = {
        key: checked(name, key, arrays[key], one.axes, dtypes if one.dtype == "T" else (one.dtype,))
        for key, one in inputs.items()
    }
    kinds = {handles[key].dtype.name for key, one in inputs.items() if one.dtype == "T"}
    found = declared.lengths({key: handle.shape for key, handle in handles.items()})
    if found is None or len(kinds) > 1:
        wanted = ", ".join(f"{key} ({', '.join(one.axes.split())})" for key, one in inputs.items())
        raise ArgumentError(f"{name}: got {_described(handles)}; expected {wanted} of one element type")
    return found, kinds.pop()


def _described(handles: dict[str, Handle]) -> str:
    return ", ".join(f"{key} {one.dtype.name}{list(one.shape)}" for key, one in handles.items())


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
    def of(
        cls,
        name: str,
        q: AnyArray,
        k: AnyArray,
        v: AnyArray,
        causal: bool,
        scale: float | None,
        dtypes: Collection[str] = HALVES,
    ) -> Attention:
        """What the arguments of a function of that name ask for.

        Args:
            name: the function's, for messages.
            q: `(batch, heads, n, d)`, dense; d is 64 or 128.
            k: `(batch, heads_kv, n_kv, d)`, likewise; heads is a multiple of heads_kv.
            v: likewise.
            causal: whether a query sees no keys behind its own, the last query's being the last key.
            scale: of the scores, above 0; 1 / √d where None.
            dtypes: names of the element types that the function takes.

        Raises:
            ArgumentError: where they do not fit.
        """
        sizes, dtype = arguments(name, dtypes, "attention", q=q, k=k, v=v)
        batch, heads, n, d, heads_kv, n_kv = (sizes[axis] for axis in ("batch", "heads", "n", "d", "heads_kv", "n_kv"))
        what = f"q {dtype}{[batch, heads, n, d]}, k and v {dtype}{[batch, heads_kv, n_kv, d]}"
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
        return cls(batch, heads, n, d, heads_kv, n_kv, dtype, ahead, factor)
