"""Which of our own kernels is the reference of an operator in a language: what speedups are told against."""

from __future__ import annotations

from collections.abc import Mapping

from triptych.judge.candidate import Candidate

_ALIKE = "vec_add elementwise_chain gelu_linear reduce_sum softmax rms_norm layer_norm swiglu rope transpose cumsum"
_COMMON = {name: name for name in (*_ALIKE.split(), "cross_entropy")}
REFERENCES: Mapping[str, Mapping[str, str]] = {
    "cuda": _COMMON | {"matmul": "matmul_tiled", "attention": "attention_tiled"},
    "triton": _COMMON | {name: name for name in ("matmul", "attention", "attention_backward")},
    "nki": _COMMON
    | {name: name for name in ("matmul", "attention", "attention_backward", "conv1d_depthwise", "mamba_scan")},
}
"""By language and operator, the function of `triptych.kernels.<language>`."""


def reference_of(operator: str, language: str) -> Candidate | None:
    """The reference kernel of an operator, as a candidate; None where there is none in the language."""
    function = REFERENCES.get(language, {}).get(operator)
    if function is None:
        return None
    module = f"triptych.kernels.{language}"
    return Candidate(f"from {module} import {function} as solution\n", f"{module}.{function}")
