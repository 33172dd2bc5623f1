"""A kernel that uses the Tensor, Vector and Scalar engines."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# ruff: noqa: ANN001, ANN201
# `nki` is found while triptych's is active.

import nki.isa as nisa
import nki.language as nl

import nki


@nki.jit
def product(a, b):
    out = nl.ndarray((a.shape[1], b.shape[1]), dtype=a.dtype, buffer=nl.shared_hbm)
    left, right = nl.load(a), nl.load(b)
    total = nl.ndarray(out.shape, dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=total, stationary=left, moving=right)
    shifted = nl.ndarray(out.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=shifted, op=nl.gelu, data=total)
    nl.store(out, nl.add(shifted, shifted))
    return out
