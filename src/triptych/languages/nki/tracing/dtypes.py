"""The dtypes of NKI as numpy dtypes, and the rules of promotion."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, cast

import ml_dtypes
import numpy as np

from triptych.core.dtypes import DTYPES, DType, dtype_of
from triptych.core.errors import NkiError, UnknownName
from triptych.languages.calling import author_location

Dtype = np.dtype[Any]

bool_: Dtype = np.dtype(np.bool_)
int8: Dtype = np.dtype(np.int8)
int16: Dtype = np.dtype(np.int16)
int32: Dtype = np.dtype(np.int32)
uint8: Dtype = np.dtype(np.uint8)
uint16: Dtype = np.dtype(np.uint16)
uint32: Dtype = np.dtype(np.uint32)
float16: Dtype = np.dtype(np.float16)
float32: Dtype = np.dtype(np.float32)
bfloat16: Dtype = np.dtype(ml_dtypes.bfloat16)
float8_e4m3: Dtype = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3fn: Dtype = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e5m2: Dtype = np.dtype(ml_dtypes.float8_e5m2)
float8_e8m0fnu: Dtype = np.dtype(ml_dtypes.float8_e8m0fnu)
# Of what numpy has no dtype for, the name is that of the one field.
tfloat32: Dtype = DTYPES["tf32"].numpy
float8_e5m2_x4: Dtype = DTYPES["x4f8e5m2"].numpy
float8_e4m3fn_x4: Dtype = DTYPES["x4f8e4m3fn"].numpy
float4_e2m1fn_x4: Dtype = DTYPES["x4f4e2m1fn"].numpy


@cache
def dtype_name(dtype: Dtype) -> str:
    """The language's name of a dtype."""
    return dtype.name if dtype.names is None else dtype.names[0]


fp32 = np.finfo(np.float32)
"""The limits of float32: `nl.fp32.min`."""


def finfo(dtype: object) -> np.finfo[np.floating]:
    """The limits of a float dtype."""
    return np.finfo(dtype)  # type: ignore[call-overload]


_BY_NAME: Mapping[str, Dtype] = {
    dtype_name(dtype): dtype
    for dtype in (
        bool_, int8, int16, int32, uint8, uint16, uint32,
        float16, float32, bfloat16, float8_e4m3, float8_e4m3fn, float8_e5m2, float8_e8m0fnu,
        tfloat32, float8_e5m2_x4, float8_e4m3fn_x4, float4_e2m1fn_x4,
    )
}  # fmt: skip

_KNOWN: Mapping[object, Dtype] = {one: one for one in _BY_NAME.values()}

# Pairs that numpy would promote otherwise. Source: the type promotion table of the NKI reference of SDK 2.26.
_PROMOTIONS: Mapping[frozenset[str], Dtype] = {
    frozenset({"float16", "bfloat16"}): float32,
    frozenset({"float8_e4m3", "float8_e5m2"}): bfloat16,
    frozenset({"float8_e4m3fn", "float8_e5m2"}): bfloat16,
    frozenset({"int8", "uint8"}): int16,
    frozenset({"int32", "uint32"}): float32,
}
_RANK = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "float8_e5m2", "float8_e4m3", "float8_e4m3fn")
_FLOAT_RANK = ("float16", "bfloat16", "tfloat32", "float32")


def nki_dtype(kind: object) -> Dtype:
    """The numpy dtype of what an author gave as `dtype=`.

    Raises:
        NkiError: for a type that no NeuronCore has (float64, int64, complex …).
    """
    try:
        known = _KNOWN.get(kind)
    except TypeError:  # a list, say
        known = None
    if known is not None:
        return known
    if isinstance(kind, str) and kind in _BY_NAME:
        return _BY_NAME[kind]
    return _of_type(kind) if isinstance(kind, type) else _of_another(cast("object", kind))


def _of_another(kind: object) -> Dtype:
    """What numpy takes for a dtype of NKI."""
    try:
        dtype: Dtype | None = np.dtype(kind)  # type: ignore[call-overload]
    except TypeError:
        dtype = None
    if dtype is None or dtype_name(dtype) not in _BY_NAME or _BY_NAME[dtype_name(dtype)] != dtype:
        raise NkiError(f"{kind!r} is no dtype of NKI", where=author_location(), hint=f"dtypes: {', '.join(_BY_NAME)}")
    return dtype


_of_type = lru_cache(256)(_of_another)


@cache
def core_dtype(dtype: Dtype) -> DType:
    """The dtype as the machine names it."""
    try:
        return dtype_of(dtype)
    except UnknownName as error:
        raise NkiError(error.message, where=author_location(), hint=error.hint) from error


def promote(first: Dtype, second: Dtype) -> Dtype:
    """The dtype that two tiles of different dtypes are computed to."""
    if first == second:
        return first
    special = _PROMOTIONS.get(frozenset({first.name, second.name}))
    if special is not None:
        return special
    ranks = (*_RANK, *_FLOAT_RANK)
    names = [dtype_name(one) for one in (first, second)]
    if not set(names) <= set(ranks):
        raise NkiError(f"{names[0]} and {names[1]} are not computed with", where=author_location())
    return max(first, second, key=lambda dtype: ranks.index(dtype_name(dtype)))


def promote_number(dtype: Dtype, number: float) -> Dtype:
    """The dtype of a tile and a Python number: a whole number keeps the tile's, a fraction makes integers float32."""
    integer = dtype.kind in "iub"
    return float32 if integer and isinstance(number, float) else dtype
