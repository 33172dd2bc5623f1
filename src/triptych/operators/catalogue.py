"""All operators, in the order in which they are listed."""

from __future__ import annotations

from collections.abc import Mapping

from triptych.core.errors import UnknownName
from triptych.operators.attention import ATTENTION
from triptych.operators.attention_backward import ATTENTION_BACKWARD
from triptych.operators.attention_varlen import ATTENTION_VARLEN
from triptych.operators.batched_matmul import BATCHED_MATMUL
from triptych.operators.conv1d import CONV1D_DEPTHWISE
from triptych.operators.conv2d import CONV2D
from triptych.operators.cross_entropy import CROSS_ENTROPY
from triptych.operators.cumsum import CUMSUM
from triptych.operators.elementwise_chain import ELEMENTWISE_CHAIN
from triptych.operators.embedding import EMBEDDING
from triptych.operators.gelu_linear import GELU_LINEAR
from triptych.operators.grouped_matmul import GROUPED_MATMUL
from triptych.operators.histogram import HISTOGRAM
from triptych.operators.layer_norm import LAYER_NORM
from triptych.operators.layer_norm_backward import LAYER_NORM_BACKWARD
from triptych.operators.mamba_scan import MAMBA_SCAN
from triptych.operators.matmul import MATMUL
from triptych.operators.matmul_epilogue import MATMUL_EPILOGUE
from triptych.operators.moe_matmul import MOE_MATMUL
from triptych.operators.operator import Operator
from triptych.operators.paged_attention import PAGED_ATTENTION
from triptych.operators.quantised_matmul import QUANTISED_MATMUL
from triptych.operators.reduce_sum import REDUCE_SUM
from triptych.operators.rms_norm import RMS_NORM
from triptych.operators.rms_norm_backward import RMS_NORM_BACKWARD
from triptych.operators.rope import ROPE
from triptych.operators.softmax import LOG_SOFTMAX, SOFTMAX
from triptych.operators.sort import SORT
from triptych.operators.swiglu import SWIGLU
from triptych.operators.topk_routing import TOPK_ROUTING
from triptych.operators.transpose import TRANSPOSE
from triptych.operators.vec_add import VEC_ADD

_ALL = (
    *(VEC_ADD, ELEMENTWISE_CHAIN, SWIGLU, ROPE),
    *(TRANSPOSE, EMBEDDING),
    *(REDUCE_SUM, SOFTMAX, LOG_SOFTMAX, CROSS_ENTROPY),
    *(RMS_NORM, RMS_NORM_BACKWARD, LAYER_NORM, LAYER_NORM_BACKWARD),
    *(MATMUL, BATCHED_MATMUL, GROUPED_MATMUL, MATMUL_EPILOGUE, QUANTISED_MATMUL, GELU_LINEAR),
    *(ATTENTION, ATTENTION_VARLEN, ATTENTION_BACKWARD, PAGED_ATTENTION),
    *(TOPK_ROUTING, MOE_MATMUL),
    *(CUMSUM, MAMBA_SCAN, HISTOGRAM, SORT),
    *(CONV1D_DEPTHWISE, CONV2D),
)
OPERATORS: Mapping[str, Operator] = {one.name: one for one in _ALL}
"""By name, those of a family one after the other."""


def operator(name: str) -> Operator:
    """The operator of that name.

    Raises:
        UnknownName: where there is none.
    """
    if name not in OPERATORS:
        raise UnknownName.of("operator", name, OPERATORS, listed="triptych operators")
    return OPERATORS[name]
