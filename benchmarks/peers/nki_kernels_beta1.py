"""Kernels that both run whose `import neuronxcc.nki` is the language: index tiles, masks, functions that give tiles.

triton-viz wants a mask of each load and store, and loads that are all that a line does. The last argument is written:
it gives nothing back.
"""

# pyright: basic, reportAttributeAccessIssue=false, reportIndexIssue=false
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced or interpreted only; `mutable_tensor` is a mark alone.

from __future__ import annotations

from triptych.languages.nki import language as nl
from triptych.languages.nki import typing as nt

PARTITIONS, MOVING = 128, 512


def add(a, b, c: nt.mutable_tensor):
    """C = a + b."""
    rows, columns = a.shape
    ip, jf = nl.arange(PARTITIONS)[:, None], nl.arange(columns)[None, :]
    for at in nl.affine_range(rows // PARTITIONS):
        row = at * PARTITIONS + ip
        mask = (row < rows) & (jf < columns)
        left = nl.load(a[row, jf], mask=mask)
        right = nl.load(b[row, jf], mask=mask)
        nl.store(c[row, jf], value=left + right, mask=mask)


def softmax(x, y: nt.mutable_tensor):
    """Y = the softmax of each row of x, whose powers must be numbers."""
    rows, columns = x.shape
    ip, jf = nl.arange(PARTITIONS)[:, None], nl.arange(columns)[None, :]
    for at in nl.affine_range(rows // PARTITIONS):
        row = at * PARTITIONS + ip
        mask = (row < rows) & (jf < columns)
        tile = nl.load(x[row, jf], mask=mask)
        powers = nl.exp(tile)
        total = nl.sum(powers, axis=1, keepdims=True)
        nl.store(y[row, jf], value=nl.multiply(powers, nl.reciprocal(total)), mask=mask)


def rms_norm(x, weight, y: nt.mutable_tensor):
    """Y = x / √(mean of the row's x²) · weight, of (128, columns)."""
    rows, columns = x.shape
    ip, jf = nl.arange(PARTITIONS)[:, None], nl.arange(columns)[None, :]
    weights = nl.load(weight[ip, jf], mask=(ip < PARTITIONS) & (jf < columns))
    for at in nl.affine_range(rows // PARTITIONS):
        row = at * PARTITIONS + ip
        mask = (row < rows) & (jf < columns)
        tile = nl.load(x[row, jf], mask=mask)
        mean = nl.multiply(nl.sum(nl.square(tile), axis=1, keepdims=True), 1 / columns)
        nl.store(y[row, jf], value=nl.multiply(nl.multiply(tile, nl.rsqrt(mean)), weights), mask=mask)


def matmul(a_t, b, c: nt.mutable_tensor):
    """C = the product of a, which comes transposed, and b."""
    (depth, rows), columns = a_t.shape, b.shape[1]
    ip, im, jn = nl.arange(PARTITIONS)[:, None], nl.arange(PARTITIONS)[None, :], nl.arange(MOVING)[None, :]
    for m in nl.affine_range(rows // PARTITIONS):
        for n in nl.affine_range(columns // MOVING):
            sums = nl.zeros((PARTITIONS, MOVING), nl.float32, buffer=nl.psum)
            column = n * MOVING + jn
            for k in nl.affine_range(depth // PARTITIONS):
                inner, across = k * PARTITIONS + ip, m * PARTITIONS + im
                left = nl.load(a_t[inner, across], mask=(inner < depth) & (across < rows))
                right = nl.load(b[inner, column], mask=(inner < depth) & (column < columns))
                sums += nl.matmul(left, right, transpose_x=True)
            row = m * PARTITIONS + ip
            made = nl.copy(sums, dtype=c.dtype)
            nl.store(c[row, column], value=made, mask=(row < rows) & (column < columns))


def attention(q_t, k_t, v, y: nt.mutable_tensor):
    """Y = the softmax of q · k, in the queries' units, times v; q and k come transposed, powers must be numbers."""
    (d, queries), keys = q_t.shape, k_t.shape[1]
    ip, im, jn = nl.arange(PARTITIONS)[:, None], nl.arange(PARTITIONS)[None, :], nl.arange(MOVING)[None, :]
    ik, jd = nl.arange(d)[:, None], nl.arange(d)[None, :]
    for at in nl.affine_range(queries // PARTITIONS):
        asked = nl.load(q_t[ik, at * PARTITIONS + im], mask=(ik < d) & (at * PARTITIONS + im < queries))
        sums = nl.zeros((PARTITIONS, d), nl.float32, buffer=nl.psum)
        total = nl.zeros((PARTITIONS, 1), nl.float32, buffer=nl.sbuf)
        for block in nl.affine_range(keys // MOVING):
            column = block * MOVING + jn
            known = nl.load(k_t[ik, column], mask=(ik < d) & (column < keys))
            powers = nl.exp(nl.matmul(asked, known, transpose_x=True))
            total += nl.sum(powers, axis=1, keepdims=True)
            for part in nl.affine_range(MOVING // PARTITIONS):
                row = block * MOVING + part * PARTITIONS + ip
                values = nl.load(v[row, jd], mask=(row < keys) & (jd < d))
                sums += nl.matmul(powers[:, part * PARTITIONS : (part + 1) * PARTITIONS], values)
        made = nl.multiply(sums, nl.reciprocal(total))
        row = at * PARTITIONS + ip
        nl.store(y[row, jd], value=made, mask=(row < queries) & (jd < d))
