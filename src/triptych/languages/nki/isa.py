"""`nki.isa` (nisa): one function an engine instruction."""

from __future__ import annotations

from typing import NoReturn

from triptych.languages.nki.isa_dma import dma_copy
from triptych.languages.nki.isa_enums import (
    dge_mode,
    engine,
    matmul_perf_mode,
    nc_version,
    oob_mode,
    reduce_cmd,
)
from triptych.languages.nki.isa_gpsimd import affine_select, iota
from triptych.languages.nki.isa_scalar import activation, activation_reduce
from triptych.languages.nki.isa_tensor import nc_matmul, nc_transpose
from triptych.languages.nki.isa_vector import (
    memset,
    reciprocal,
    scalar_tensor_tensor,
    tensor_copy,
    tensor_copy_predicated,
    tensor_reduce,
    tensor_scalar,
    tensor_tensor,
)
from triptych.languages.nki.names import missing_name
from triptych.languages.nki.tracer import current

__all__ = [
    "activation", "activation_reduce", "affine_select", "dge_mode", "dma_copy", "engine", "get_nc_version",
    "gpsimd_engine", "iota", "matmul_perf_mode", "memset", "nc_matmul", "nc_transpose", "nc_version", "oob_mode",
    "reciprocal", "reduce_cmd", "scalar_engine", "scalar_tensor_tensor", "tensor_copy", "tensor_copy_predicated",
    "tensor_engine", "tensor_reduce", "tensor_scalar", "tensor_tensor", "unknown_engine", "vector_engine",
]  # fmt: skip

_NOT_YET = frozenset(
    {
        "activate2", "bn_aggr", "bn_stats", "builtin_custom_op", "core_barrier", "dma_compute", "dma_engine",
        "dma_transpose", "dropout", "exponential", "get_nc_sub_version", "local_gather", "max8", "nc_find_index8",
        "nc_match_replace8", "nc_matmul_mx", "nc_n_gather", "nc_stream_shuffle", "nonzero_with_count", "quantize_mx",
        "rand2", "rand_get_state", "rand_set_state", "range_select", "register_alloc", "register_load",
        "register_move", "register_store", "rng", "select_reduce", "sendrecv", "sequence_bounds", "set_rng_seed",
        "tensor_copy_dynamic_dst", "tensor_copy_dynamic_src", "tensor_partition_reduce", "tensor_scalar_cumulative",
        "tensor_scalar_reduce", "tensor_tensor_scan", "topk",
    }
)  # fmt: skip
"""Names of `nki.isa` that are not implemented."""

tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
unknown_engine = engine.unknown


def get_nc_version() -> nc_version:
    """The generation of the target."""
    return nc_version(current("nisa.get_nc_version").hardware.generation)


def __getattr__(name: str) -> NoReturn:
    """A name that the module does not have, or that is not implemented."""
    missing_name("nki.isa", name, __all__, _NOT_YET)
