"""Kernels that both run whose `import nki` is the language: every operation names its destination.

The last argument is written: triton-viz gives nothing back.
"""

# pyright: basic, reportAttributeAccessIssue=false, reportIndexIssue=false
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced or interpreted only; `mutable_tensor` is a mark alone.

from __future__ import annotations

import math

from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import typing as nt

PARTITIONS, MOVING = 128, 512


def tile_of(shape, dtype):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)


def loaded(source, shape, dtype):
    tile = tile_of(shape, dtype)
    nisa.dma_copy(dst=tile, src=source)
    return tile


def add(a, b, c: nt.mutable_tensor):
    rows, columns = a.shape
    for at in nl.affine_range(rows // PARTITIONS):
        here = nl.ds(at * PARTITIONS, PARTITIONS)
        left, right = (loaded(one[here, :], (PARTITIONS, columns), a.dtype) for one in (a, b))
        made = tile_of((PARTITIONS, columns), c.dtype)
        nisa.tensor_tensor(dst=made, data1=left, data2=right, op=nl.add)
        nisa.dma_copy(dst=c[here, :], src=made)
    return c


def softmax(x, y: nt.mutable_tensor):
    rows, columns = x.shape
    for at in nl.affine_range(rows // PARTITIONS):
        here = nl.ds(at * PARTITIONS, PARTITIONS)
        tile = loaded(x[here, :], (PARTITIONS, columns), x.dtype)
        peak, total, factor = (tile_of((PARTITIONS, 1), nl.float32) for _ in range(3))
        powers, made = tile_of((PARTITIONS, columns), nl.float32), tile_of((PARTITIONS, columns), y.dtype)
        nisa.tensor_reduce(dst=peak, op=nl.maximum, data=tile, axis=1, negate=True, keepdims=True)
        nisa.activation(dst=powers, op=nl.exp, data=tile, bias=peak)
        nisa.tensor_reduce(dst=total, op=nl.add, data=powers, axis=1, keepdims=True)
        nisa.reciprocal(dst=factor, data=total)
        nisa.tensor_scalar(dst=made, data=powers, op0=nl.multiply, operand0=factor)
        nisa.dma_copy(dst=y[here, :], src=made)
    return y


def rms_norm(x, weight, y: nt.mutable_tensor):
    rows, columns = x.shape
    weights = loaded(weight[:, :], (PARTITIONS, columns), weight.dtype)
    for at in nl.affine_range(rows // PARTITIONS):
        here = nl.ds(at * PARTITIONS, PARTITIONS)
        tile = loaded(x[here, :], (PARTITIONS, columns), x.dtype)
        squares, scaled = (tile_of((PARTITIONS, columns), nl.float32) for _ in range(2))
        total, factor = (tile_of((PARTITIONS, 1), nl.float32) for _ in range(2))
        made = tile_of((PARTITIONS, columns), y.dtype)
        nisa.tensor_tensor(dst=squares, data1=tile, data2=tile, op=nl.multiply)
        nisa.tensor_reduce(dst=total, op=nl.add, data=squares, axis=1, keepdims=True)
        nisa.tensor_scalar(dst=total, data=total, op0=nl.multiply, operand0=1 / columns, op1=nl.add, operand1=1e-5)
        nisa.activation(dst=factor, op=nl.rsqrt, data=total)
        nisa.tensor_scalar(dst=scaled, data=tile, op0=nl.multiply, operand0=factor)
        nisa.tensor_tensor(dst=made, data1=scaled, data2=weights, op=nl.multiply)
        nisa.dma_copy(dst=y[here, :], src=made)
    return y


def matmul(a_t, b, c: nt.mutable_tensor):
    (depth, rows), columns = a_t.shape, b.shape[1]
    for m in nl.affine_range(rows // PARTITIONS):
        for n in nl.affine_range(columns // MOVING):
            sums = nl.ndarray((PARTITIONS, MOVING), dtype=nl.float32, buffer=nl.psum)
            here, there = nl.ds(m * PARTITIONS, PARTITIONS), nl.ds(n * MOVING, MOVING)
            for k in nl.affine_range(depth // PARTITIONS):
                inner = nl.ds(k * PARTITIONS, PARTITIONS)
                left = loaded(a_t[inner, here], (PARTITIONS, PARTITIONS), a_t.dtype)
                right = loaded(b[inner, there], (PARTITIONS, MOVING), b.dtype)
                nisa.nc_matmul(dst=sums, stationary=left, moving=right)
            made = tile_of((PARTITIONS, MOVING), c.dtype)
            nisa.tensor_copy(dst=made, src=sums)
            nisa.dma_copy(dst=c[here, there], src=made)
    return c


def attention(q_t, k_t, v, y: nt.mutable_tensor):
    (d, queries), keys = q_t.shape, k_t.shape[1]
    scale = 1 / math.sqrt(d)
    for at in nl.affine_range(queries // PARTITIONS):
        here = nl.ds(at * PARTITIONS, PARTITIONS)
        asked = loaded(q_t[:, here], (d, PARTITIONS), q_t.dtype)
        scores, powers = (tile_of((PARTITIONS, keys), nl.float32) for _ in range(2))
        peak, total, factor = (tile_of((PARTITIONS, 1), nl.float32) for _ in range(3))
        for n in nl.affine_range(keys // MOVING):
            there = nl.ds(n * MOVING, MOVING)
            known = loaded(k_t[:, there], (d, MOVING), k_t.dtype)
            sums = nl.ndarray((PARTITIONS, MOVING), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=sums, stationary=asked, moving=known)
            nisa.tensor_copy(dst=scores[:, there], src=sums)
        nisa.tensor_scalar(dst=scores, data=scores, op0=nl.multiply, operand0=scale)
        nisa.tensor_reduce(dst=peak, op=nl.maximum, data=scores, axis=1, negate=True, keepdims=True)
        nisa.activation(dst=powers, op=nl.exp, data=scores, bias=peak)
        nisa.tensor_reduce(dst=total, op=nl.add, data=powers, axis=1, keepdims=True)
        nisa.reciprocal(dst=factor, data=total)
        made = nl.ndarray((PARTITIONS, d), dtype=nl.float32, buffer=nl.psum)
        for k in nl.affine_range(keys // PARTITIONS):
            inner = nl.ds(k * PARTITIONS, PARTITIONS)
            turned = nl.ndarray((PARTITIONS, PARTITIONS), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_transpose(dst=turned, data=powers[:, inner])
            weights = tile_of((PARTITIONS, PARTITIONS), v.dtype)
            nisa.tensor_copy(dst=weights, src=turned)
            values = loaded(v[inner, :], (PARTITIONS, d), v.dtype)
            nisa.nc_matmul(dst=made, stationary=weights, moving=values)
        result = tile_of((PARTITIONS, d), y.dtype)
        nisa.tensor_scalar(dst=result, data=made, op0=nl.multiply, operand0=factor)
        nisa.dma_copy(dst=y[here, :], src=result)
    return y
