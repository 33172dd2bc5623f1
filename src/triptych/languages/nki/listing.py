"""Every name that AWS's documentation lists for NKI's modules, of both generations (SDK 2.26 and SDK 2.32).

What of them there is here follows from what is defined (`names.py`); the rest is known to be missing.
"""

from __future__ import annotations

from collections.abc import Mapping

_NAMES: Mapping[str, str] = {
    "nki.isa": """
        NkiInstruction NkiValidationError VirtualRegister activate2 activation activation_reduce affine_select
        bn_aggr bn_stats builtin_custom_op core_barrier dge_mode dma_compute dma_copy dma_engine dma_transpose
        dropout engine exponential get_nc_sub_version get_nc_version gpsimd_engine iota local_gather
        matmul_perf_mode max8 memset nc_find_index8 nc_match_replace8 nc_matmul nc_matmul_mx nc_n_gather
        nc_stream_shuffle nc_transpose nc_version nonzero_with_count oob_mode quantize_mx rand2 rand_get_state
        rand_set_state range_select reciprocal reduce_cmd register_alloc register_load register_move
        register_store rng scalar_engine scalar_tensor_tensor select_reduce sendrecv sequence_bounds
        set_rng_seed tensor_copy tensor_copy_dynamic_dst tensor_copy_dynamic_src tensor_copy_predicated
        tensor_engine tensor_partition_reduce tensor_reduce tensor_scalar tensor_scalar_cumulative
        tensor_scalar_reduce tensor_tensor tensor_tensor_scan topk unknown_engine vector_engine
    """,
    "nki.language": """
        NKIObject NkiTensor abs abs_max abs_min add affine_range all all_reduce arange arctan atomic_rmw average
        bfloat16
        bitwise_and bitwise_or bitwise_xor bool_ broadcast_to bypass ceil copy cos device_print divide dropout
        ds dynamic_range empty_like equal erf erf_dx exp expand_dims finfo float16 float32 float4_e2m1fn_x4
        float8_e4m3 float8_e4m3fn float8_e4m3fn_x4 float8_e5m2 float8_e5m2_x4 float8_e8m0fnu floor fmod
        fori_loop fp32 full gather_flattened gelu gelu_apprx_sigmoid gelu_apprx_sigmoid_dx gelu_apprx_tanh
        gelu_dx gemm_grid gemm_stationary_grid greater greater_equal hbm int16 int32 int8 invert is_hbm
        is_on_chip is_psum is_sbuf left_shift less less_equal load load_transpose2d log logical_and logical_not
        logical_or logical_xor loop_reduce matmul max maximum mean mgrid min minimum mish mod multiply nc
        ndarray negative no_reorder not_equal num_programs ones par_dim power prelu private_hbm prod program_id
        program_ndim psum rand random_seed reciprocal relu right_shift rms_norm rsqrt sbuf sequential_range
        shared_constant shared_hbm shared_identity_matrix sigmoid sign silu silu_dx sin softmax softplus
        spmd_dim sqrt square static_cast static_range store subtract sum tan tanh tfloat32 tile_size transpose
        trunc uint16 uint32 uint8 var where while_loop zeros zeros_like
    """,
    "nki": """
        baremetal benchmark collectives dtype isa jit language profile simulate typing
    """,
    "nki.collectives": """
        ReplicaGroup all_gather all_gather_v all_reduce all_to_all all_to_all_v collective_permute
        collective_permute_implicit collective_permute_implicit_current_processing_rank_id
        collective_permute_implicit_reduce rank_id reduce_scatter
    """,
    "neuronxcc.nki": """
        FrameworkKernel baremetal benchmark compiler isa jit language profile simulate_kernel tensor trace
        typing
    """,
}

LISTING: Mapping[str, frozenset[str]] = {module: frozenset(names.split()) for module, names in _NAMES.items()}
"""The names of each module, as authors import it."""
