"""torch's own operators on the device: their modelled time, and sums that the CPU would round otherwise than a GPU.

The time is that of a GPU's library, not of the CPU that they run on. An operator counts as one launch that reads its
inputs and writes its results once, at the chip's memory bandwidth, and whose FLOPs, where torch knows them (products,
convolutions, attention), run at the peak of its element type. Views and allocations take no time. So it is a lower
bound, as the roofline of a kernel is.
"""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from threading import local
from typing import Any, cast

from torch.utils._python_dispatch import TorchDispatchMode

from triptych.chips import GpuChip
from triptych.languages.triton.clock import ticks_of
from triptych.languages.triton.devices import device_in_force
from triptych.languages.triton.driver import simulated_driver
from triptych.languages.triton.repeats import kind_of
from triptych.languages.triton.torch_cuda.marks import storage_of, tensors_in

torch: Any = import_module("torch")
_formulas: Mapping[Any, Any] = import_module("torch.utils.flop_counter").flop_registry
_pytree: Any = import_module("torch.utils._pytree")
_aten: Any = torch.ops.aten

_FREE = frozenset({
    _aten.empty, _aten.empty_like, _aten.empty_strided, _aten.new_empty, _aten.new_empty_strided, _aten.detach,
    _aten._local_scalar_dense, _aten.resize_, _aten.set_, _aten.lift_fresh,
})  # fmt: skip
"""Operators that no GPU has to run."""
_OVERWRITES = frozenset({"fill_", "zero_", "copy_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_"})
_ON_A_GPU = {
    _aten._scaled_dot_product_flash_attention_for_cpu: _aten._scaled_dot_product_flash_attention,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward: _aten._scaled_dot_product_flash_attention_backward,
}
"""Operators that only CPUs have, with the one whose formula says their FLOPs."""
_PIPES = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "tensor.f16", torch.bfloat16: "tensor.bf16",
    torch.float8_e4m3fn: "tensor.fp8", torch.float8_e5m2: "tensor.fp8", torch.int8: "tensor.s8",
}  # fmt: skip
"""Which pipe an operator's FLOPs run on, by its first argument."""
_SUMMED_IN_F32: Mapping[Any, int | None] = {
    _aten.native_layer_norm: 1,
    _aten.native_layer_norm_backward: None,
    _aten.embedding_dense_backward: None,
    _aten.index_put: None,
    _aten.index_put_: None,
    _aten._index_put_impl_: None,
}
"""Operators whose sums the CPU keeps in 16 bits where the elements have as many; GPUs keep them in f32. With each how
many of its results have the elements' type, all where it is not said: a GPU leaves statistics in f32."""
_WITH_SUMS = frozenset({
    torch.Tensor.backward, torch.autograd.grad, torch.nn.functional.layer_norm, torch.layer_norm,
    torch.native_layer_norm, torch.mm, torch.bmm, torch.addmm, torch.baddbmm,
})  # fmt: skip
"""Functions in which those occur, or products with an `out_dtype`."""
_OF_GPUS = frozenset({
    getattr(getattr(_aten, name), form) for name in ("mm", "bmm", "addmm", "baddbmm") for form in ("dtype", "dtype_out")
    if hasattr(getattr(_aten, name), form)
})  # fmt: skip
"""Products of 16-bit floats with an `out_dtype` of 32 bits, which the CPU does not have."""
_HALVES = (torch.float16, torch.bfloat16)
_state = local()


@dataclass(frozen=True, slots=True)
class _Input:
    """In place of a result that is one of the operator's inputs."""

    place: int


class _Operators(TorchDispatchMode):
    """Sees each operator that runs in it, those of a backward pass too."""

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        repeats = simulated_driver.repeats
        if not repeats.wanted or func.overloadpacket not in _formulas:  # comparisons must be true
            return self._run(func, args, kwargs)
        inputs = (*args, *kwargs.values())
        what = func, kind_of(args), *((name, kind_of(value)) for name, value in kwargs.items())
        result = repeats.run(
            str(func.overloadpacket), what, lambda: self._run(func, args, kwargs), lambda result: _again(inputs, result)
        )
        return inputs[result.place] if isinstance(result, _Input) else result

    def _run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if func in _OF_GPUS:
            *factors, out_dtype = args
            result, args = product(func, factors, out_dtype, kwargs), tuple(factors)
        elif func.overloadpacket in _SUMMED_IN_F32:
            result = in_f32(func, args, kwargs)
        else:
            result = func(*args, **kwargs)
        if simulated_driver.clock.running:
            seconds = seconds_of(func, args, kwargs, result, device_in_force().chip)
            if seconds:
                simulated_driver.clock.advance(ticks_of(seconds), str(func.overloadpacket))
        return result


@contextmanager
def operators_of(function: object) -> Generator[None]:
    """Operators inside the `with` block, where `function` of torch runs, are those of the device."""
    wanted = simulated_driver.clock.running or function in _WITH_SUMS or simulated_driver.repeats.wanted
    if not wanted or getattr(_state, "inside", False):
        yield
        return
    _state.inside = True
    try:
        with _Operators():
            yield
    finally:
        _state.inside = False


def _again(inputs: tuple[Any, ...], result: Any) -> Callable[[], Any] | None:
    """What gives a tensor like one of its own memory that an operator has made, or says which input it gave back.

    None for any other result.
    """
    same = next((place for place, one in enumerate(inputs) if one is result), None)
    if same is not None:
        return lambda: _Input(same)
    storages = {id(storage_of(one)) for one in tensors_in(inputs)}
    if not isinstance(result, torch.Tensor) or storage_of(result) is None or id(storage_of(result)) in storages:
        return None
    shape, strides, dtype = result.shape, result.stride(), result.dtype
    return lambda: _aten.empty_strided(shape, strides, dtype=dtype)


def in_f32(operator: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """The operator on f32 copies of its 16-bit floats; what it gives, or writes in place, is rounded to their type."""
    first = next((one for one in tensors_in(arguments) if one.dtype in _HALVES), None)
    if first is None:
        return operator(*arguments, **keywords)

    def widened(one: Any) -> Any:
        return one.to(torch.float32) if one.dtype in _HALVES else one

    wide = _pytree.tree_map_only(torch.Tensor, widened, arguments)
    results = operator(*wide, **keywords)
    if operator._schema.is_mutable:
        return arguments[0].copy_(wide[0])
    if not isinstance(results, tuple):
        return results.to(first.dtype)
    several = cast("tuple[Any, ...]", results)
    count = _SUMMED_IN_F32[operator.overloadpacket]
    narrow = [one if one is None else one.to(first.dtype) for one in several[:count]]
    return (*narrow, *several[len(narrow) :])


def product(operator: Any, factors: Iterable[Any], out_dtype: Any, keywords: Mapping[str, Any]) -> Any:
    """A product with an `out_dtype`, of factors that have that type: those of two 16-bit floats are exact in it."""
    form = operator.overloadpacket.out if "out" in keywords else operator.overloadpacket.default
    return form(*(factor.to(out_dtype) for factor in factors), **keywords)


def seconds_of(
    operator: Any,
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    result: object,
    chip: GpuChip,
) -> float:
    """Modelled seconds of one operator of torch's (`torch.ops.aten…`) that gave `result`."""
    packet = operator.overloadpacket
    read = {name: value for name, value in keywords.items() if name != "out"}
    inputs, outputs = [*tensors_in(arguments), *tensors_in(read)], [*tensors_in(result)]
    if packet in _FREE or _is_view(operator, inputs, outputs):
        return 0.0
    moved = _bytes_of(_read_of(packet.__name__, inputs)) + _bytes_of(outputs)
    seconds = moved / chip.dram_bytes_per_s
    formula = _formulas.get(_ON_A_GPU.get(packet, packet))
    if formula is not None and inputs:
        flops = formula(*arguments, **keywords, out_val=result)
        seconds = max(seconds, flops / chip.flops_per_s.get(_pipe(inputs[0].dtype), chip.flops_per_s["f32"]))
    return chip.launch_overhead_s + seconds


def _read_of(name: str, inputs: list[Any]) -> list[Any]:
    """What an operator reads of its arguments: those of `full_like` only say a shape, `fill_` overwrites its first."""
    if name.endswith("_like") or name.startswith("new_"):
        return []
    return inputs[1:] if name in _OVERWRITES else inputs


def _bytes_of(tensors: Iterable[Any]) -> int:
    """Bytes of the elements, of each tensor once."""
    return sum(one.element_size() * one.numel() for one in {id(one): one for one in tensors}.values())


def _pipe(dtype: object) -> str:
    if dtype is torch.float32 and torch.backends.cuda.matmul.allow_tf32:
        return "tensor.tf32"
    return _PIPES.get(dtype, "f32")


def _is_view(operator: Any, inputs: list[Any], outputs: list[Any]) -> bool:
    """Whether it gives nothing but views of its arguments, and changes none."""
    if operator._schema.is_mutable or not inputs:
        return False
    storages = {id(storage_of(one)) for one in inputs}
    return all(id(storage_of(one)) in storages for one in outputs)
