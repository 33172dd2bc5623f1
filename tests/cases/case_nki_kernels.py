"""NKI kernels of the cases, as their users write them; imported once NKI is active."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only; `nki` is found once triptych provides it.

import nki.isa as nisa
import nki.language as nl

import nki


@nki.jit
def add_kernel(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(a.shape[0])[:, None]
    i_f = nl.arange(a.shape[1])[None, :]
    nl.store(out[i_p, i_f], value=nl.add(nl.load(a[i_p, i_f]), nl.load(b[i_p, i_f])))
    return out


@nki.jit
def add_tile(a, b):
    """A + b of one tile, with destinations passed."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    left = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    nisa.tensor_tensor(dst=left, data1=left, data2=right, op=nl.add)
    nisa.dma_copy(dst=out, src=left)
    return out


def step(index, tile):
    """One elementwise operation of the chain, in place."""
    if index == 0:
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=1.5)
    elif index == 1:
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=0.25)
    elif index == 2:
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.maximum, operand0=0.0)
    elif index == 3:
        nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.multiply)
    else:
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.subtract, operand0=1.0)


@nki.jit
def chain(x, first, last):
    """Steps `first` to `last` - 1 of the chain, with one load and one store a tile."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, x.shape[0], 128):
        tile = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[row : row + 128, :])
        for index in range(first, last):
            step(index, tile)
        nisa.dma_copy(dst=out[row : row + 128, :], src=tile)
    return out
