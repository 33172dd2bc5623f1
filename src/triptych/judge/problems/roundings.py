"""How often a reference rounds: its operators are counted as they run, and how many terms their sums have."""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

torch: Any = import_module("torch")
_flops: Mapping[Any, Callable[..., int]] = import_module("torch.utils.flop_counter").flop_registry
_pytree: Any = import_module("torch.utils._pytree")
_aten: Any = torch.ops.aten
_ALONG_AN_AXIS = frozenset({
    _aten._softmax, _aten._log_softmax, _aten.cumsum, _aten.cumprod, _aten.logcumsumexp, _aten.native_layer_norm,
    _aten.native_group_norm, _aten.native_batch_norm, _aten._native_batch_norm_legit, _aten.logsumexp,
})  # fmt: skip
"""Operators whose results have as many elements as their inputs, each made of many."""
_EXACT = frozenset({
    _aten.clone, _aten.copy_, _aten.empty, _aten.empty_like, _aten.empty_strided, _aten.zeros, _aten.zeros_like,
    _aten.ones, _aten.ones_like, _aten.full, _aten.full_like, _aten.fill_, _aten.zero_, _aten.cat, _aten.stack,
    _aten.index_select, _aten.gather, _aten.relu, _aten.relu_, _aten.clamp, _aten.maximum, _aten.minimum, _aten.neg,
    _aten.abs, _aten.where, _aten.max_pool2d_with_indices, _aten.embedding, _aten.constant_pad_nd, _aten._to_copy,
})  # fmt: skip
"""Operators that move numbers, or choose among them."""
_CONVOLUTIONS = frozenset({_aten.convolution, _aten._convolution})


@dataclass(slots=True)
class Roundings:
    """Of one run of a reference."""

    operators: int = 0
    """That compute floating-point numbers: each rounds its results."""
    terms: int = 0
    """Of sums: the longest of each operator, added up over all of them."""
    matrix_flops: int = 0
    """FLOPs of matrix products and convolutions."""
    convolves: bool = False
    """Whether a convolution is among them."""


def roundings_of(run: Callable[[], object]) -> Roundings:
    """What one run of a reference rounds."""
    found = Roundings()
    with _Counting(found):
        run()
    return found


class _Counting(TorchDispatchMode):
    """Counts the operators that run in it."""

    def __init__(self, found: Roundings) -> None:
        TorchDispatchMode.__init__(self)  # pyright: ignore[reportUnknownMemberType]
        self._found = found

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        inputs, outputs = _tensors((args, kwargs)), _tensors(result)
        packet = func.overloadpacket
        if packet not in _EXACT and any(one.is_floating_point() for one in outputs) and not _is_view(inputs, outputs):
            self._count(packet, args, kwargs, result, inputs, outputs)
        return result

    def _count(self, packet: Any, args: Any, kwargs: Any, result: Any, inputs: list[Any], outputs: list[Any]) -> None:
        found, elements = self._found, max(1, outputs[0].numel())
        found.operators += 1
        largest = max((one.numel() for one in inputs), default=0)
        if packet in _flops:
            flops = int(_flops[packet](*args, **kwargs, out_val=result))
            found.matrix_flops += flops
            found.convolves |= packet in _CONVOLUTIONS
            found.terms += flops // (2 * elements)
        elif packet in _ALONG_AN_AXIS:
            found.terms += max(inputs[0].shape, default=1) if inputs else 1
        elif largest > elements:
            found.terms += largest // elements


def _tensors(value: Any) -> list[Any]:
    return [one for one in _pytree.tree_leaves(value) if isinstance(one, torch.Tensor)]


def _is_view(inputs: list[Any], outputs: list[Any]) -> bool:
    places = {one.untyped_storage().data_ptr() for one in inputs}
    return all(one.untyped_storage().data_ptr() in places for one in outputs)
