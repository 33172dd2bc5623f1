"""torch's CUDA device while the driver is active: tensors say where they are, and torch is put back as it was."""

# Triton's and torch's values are `Any` here.
# ruff: noqa: ANN001, ANN201, ANN401
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportAttributeAccessIssue=false, reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportUntypedBaseClass=false

from __future__ import annotations

import copy
import gc
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from triptych.core.errors import UnsupportedFeature, UsageError
from triptych.languages.triton import activate, deactivate

torch: Any = pytest.importorskip("torch")
jit: Any = triton.jit


@jit
def twice(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, 2 * tl.load(x + offsets, mask=offsets < n), mask=offsets < n)


@jit
def through_a_table(table, out, BLOCK: tl.constexpr):
    source = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    offsets = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * BLOCK + offsets, tl.load(source + offsets))


def on_cuda(*shape: int) -> Any:
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32, device="cuda").reshape(shape)


CUDA_TENSORS: dict[str, Callable[[], Any]] = {
    "a name": lambda: torch.zeros(3, device="cuda"),
    "a name with a number": lambda: torch.zeros(3, device="cuda:0"),
    "a number": lambda: torch.zeros(3).to(0),
    "a device": lambda: torch.ones(3, device=torch.device("cuda")),
    "the driver's": lambda: torch.rand(3, device=triton.runtime.driver.active.get_active_torch_device()),
    "of a list": lambda: torch.tensor([1, 2], device="cuda"),
    "moved": lambda: torch.zeros(3).cuda(),
    "moved by name": lambda: torch.zeros(3).to("cuda"),
    "moved and converted": lambda: torch.zeros(3).to("cuda", torch.float16),
    "by keyword": lambda: torch.zeros(3).to(device="cuda", dtype=torch.float64),
    "moved to another's": lambda: torch.zeros(3).to(on_cuda(1)),
    "converted": lambda: on_cuda(3).to(torch.float16),
    "like": lambda: torch.empty_like(on_cuda(3)),
    "like, of the host's": lambda: torch.empty_like(torch.zeros(3), device="cuda"),
    "new": lambda: on_cuda(3).new_zeros(4),
    "a sum": lambda: on_cuda(3) + 1,
    "in place": lambda: on_cuda(3).mul_(2),
    "a view": lambda: on_cuda(3, 4)[1:, ::2].t(),
    "one of several": lambda: torch.chunk(on_cuda(4), 2)[1],
    "stacked": lambda: torch.stack([on_cuda(4), on_cuda(4)]),
    "of numpy": lambda: torch.as_tensor(np.zeros(3), device="cuda"),
    "a module's": lambda: torch.nn.Linear(2, 3).cuda().weight,
    "made there": lambda: torch.nn.Linear(2, 3, device="cuda").bias,
    "a parameter": lambda: torch.nn.Parameter(on_cuda(3)),
    "deeply copied": lambda: copy.deepcopy(on_cuda(3)),
    "drawn": lambda: torch.rand(3, device="cuda", generator=torch.Generator(device="cuda").manual_seed(1)),
}
HOST_TENSORS: dict[str, Callable[[], Any]] = {
    "plain": lambda: torch.zeros(3),
    "moved back": lambda: on_cuda(3).cpu(),
    "moved back by name": lambda: on_cuda(3).to("cpu"),
    "moved back by example": lambda: on_cuda(3).to(torch.zeros(1)),
    "like": lambda: torch.empty_like(on_cuda(3), device="cpu"),
    "copied to": lambda: torch.zeros(3).copy_(on_cuda(3)),
    "converted": lambda: torch.zeros(3).to(torch.float16),
}


@pytest.mark.parametrize("make", CUDA_TENSORS.values(), ids=CUDA_TENSORS)
def test_a_tensor_on_the_device_says_so(active: None, make: Callable[[], Any]) -> None:
    tensor = make()
    assert tensor.device == torch.device("cuda", 0)
    assert tensor.is_cuda
    assert not tensor.is_cpu
    assert tensor.get_device() == 0
    assert "device='cuda:0'" in repr(tensor)
    assert tensor.data_ptr() % 256 < tensor.untyped_storage().nbytes()


@pytest.mark.parametrize("make", HOST_TENSORS.values(), ids=HOST_TENSORS)
def test_a_tensor_of_the_host_says_so(active: None, make: Callable[[], Any]) -> None:
    tensor = make()
    assert tensor.device == torch.device("cpu")
    assert not tensor.is_cuda
    assert "device" not in repr(tensor)
    assert tensor.data_ptr() == tensor.numpy().__array_interface__["data"][0]


def test_moving_copies_and_what_is_there_stays(active: None) -> None:
    host = torch.zeros(3)
    moved = host.cuda()
    moved += 1
    assert host.tolist() == [0, 0, 0]
    assert moved.cuda() is moved
    assert moved.to("cuda") is moved
    back = moved.cpu()
    back += 1
    assert moved.tolist() == [1, 1, 1]
    array = np.zeros(3)
    torch.as_tensor(array, device="cuda").add_(1)
    assert not array.any()
    with pytest.raises(TypeError, match=r"can't convert cuda:0 device type tensor to numpy"):
        moved.numpy()
    with pytest.raises(TypeError, match=r"can't convert cuda:0"):
        np.asarray(moved)


def test_how_a_tensor_is_printed(active: None) -> None:
    assert repr(torch.tensor([1.5], device="cuda")) == "tensor([1.5000], device='cuda:0')"
    assert repr(torch.tensor(2, device="cuda")) == "tensor(2, device='cuda:0')"
    half = torch.zeros(1, dtype=torch.float16, device="cuda")
    assert f"{half}" == str(half) == "tensor([0.], device='cuda:0', dtype=torch.float16)"
    leaf = torch.zeros(1, device="cuda", requires_grad=True)
    assert repr(leaf) == "tensor([0.], device='cuda:0', requires_grad=True)"
    assert f"{torch.tensor(2.0, device='cuda'):.2f}" == "2.00"


def test_the_default_device(active: None) -> None:
    torch.set_default_device("cuda")
    try:
        assert torch.arange(3).is_cuda
        assert torch.as_tensor(np.zeros(2)).is_cuda
        assert not torch.zeros(3, device="cpu").is_cuda
    finally:
        torch.set_default_device(None)
    with torch.device("cuda"):
        assert torch.zeros(2).is_cuda
    assert not torch.zeros(2).is_cuda


def test_kernels_take_them_and_pointers_in_them(active: None) -> None:
    x = on_cuda(100)
    out = torch.empty_like(x)
    twice[(2,)](x, out, x.numel(), BLOCK=64)
    torch.testing.assert_close(out, 2 * x)
    parts = [on_cuda(32), on_cuda(32) + 5]
    table = torch.tensor([part.data_ptr() for part in parts], dtype=torch.int64, device="cuda")
    gathered = torch.empty(64, device="cuda")
    through_a_table[(2,)](table, gathered, BLOCK=32)
    torch.testing.assert_close(gathered, torch.cat(parts))


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        (x,) = ctx.saved_tensors
        assert gradient.is_cuda == x.is_cuda
        scratch = torch.empty(gradient.shape, device=gradient.device)
        assert scratch.is_cuda == x.is_cuda
        return 2 * gradient


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_a_custom_backward_pass_sees_the_device(active: None, device: str) -> None:
    x = torch.ones(3, device=device, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.device.type == device
    (gradient,) = torch.autograd.grad(Double.apply(x).sum(), x)
    assert gradient.tolist() == [2, 2, 2]


def test_training_stays_on_the_device(active: None) -> None:
    layer = torch.nn.Linear(4, 2).to("cuda")
    optimiser = torch.optim.AdamW(layer.parameters(), lr=0.1)
    before = layer.weight.detach().clone()
    layer(torch.ones(3, 4, device="cuda")).sum().backward()
    optimiser.step()
    assert layer.weight.is_cuda
    assert layer.weight.grad.is_cuda
    assert not torch.equal(before, layer.weight)


@pytest.mark.parametrize(("options", "dtype"), [({}, "float16"), ({"dtype": torch.bfloat16}, "bfloat16")])
def test_autocast(active: None, options: dict[str, Any], dtype: str) -> None:
    a = torch.ones(4, 4, device="cuda")
    with torch.autocast("cuda", **options):
        assert (a @ a).dtype == getattr(torch, dtype)
    with torch.autocast(device_type="cuda", enabled=False):
        assert (a @ a).dtype == torch.float32
    assert (a @ a).dtype == torch.float32


def test_other_threads_see_the_device(active: None) -> None:
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(torch.zeros(1, device="cuda").is_cuda))
    thread.start()
    thread.join()
    assert seen == [True]


def test_the_device_s_properties() -> None:
    with activate(chip="a100", target="sm_80"):
        assert torch.cuda.is_available()
        assert torch.cuda.device_count() == 1
        assert torch.cuda.current_device() == 0
        assert torch.cuda.get_device_capability() == (8, 0)
        assert torch.cuda.get_device_capability((0, "names none")) == (8, 0)
        with pytest.raises(ValueError, match="cpu"):
            torch.cuda.get_device_capability("cpu")
        assert torch.cuda.get_device_name(0).startswith("NVIDIA A100")
        properties = torch.cuda.get_device_properties("cuda")
        assert (properties.multi_processor_count, properties.warp_size) == (108, 32)
        assert (properties.major, properties.minor) == (8, 0)
        assert properties.total_memory == torch.cuda.mem_get_info()[1]
        assert torch.cuda.is_bf16_supported()
        with activate(chip="t4"):
            assert torch.cuda.get_device_capability("cuda:0") == (7, 5)
            assert not torch.cuda.is_bf16_supported()


def test_the_accelerator(active: None) -> None:
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator().type == "cuda"
    assert torch.accelerator.device_count() == 1
    assert torch.zeros(1, device=torch.accelerator.current_accelerator()).is_cuda


def test_memory_is_accounted_for(active: None) -> None:
    gc.collect()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    kept, dropped = torch.empty(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
    view = kept[5:]
    assert torch.cuda.memory_allocated() - before == 8 << 20
    del dropped, kept
    assert view.numel()
    assert torch.cuda.memory_allocated() - before == 4 << 20
    assert torch.cuda.max_memory_allocated() - before == 8 << 20
    assert torch.cuda.memory_stats()["allocated_bytes.all.peak"] == torch.cuda.max_memory_allocated()
    torch.cuda.empty_cache()


def test_seeds(active: None) -> None:
    torch.cuda.manual_seed(7)
    first = torch.rand(4, device="cuda")
    state = torch.cuda.get_rng_state()
    second = torch.rand(4, device="cuda")
    torch.cuda.manual_seed_all(7)
    assert torch.equal(first, torch.rand(4, device="cuda"))
    torch.cuda.set_rng_state(state)
    assert torch.equal(second, torch.rand(4, device="cuda"))
    assert isinstance(torch.Generator(), torch.Generator)
    assert isinstance(torch.default_generator, torch.Generator)


def test_streams_and_events_are_in_order(active: None) -> None:
    x = on_cuda(1 << 12)
    out, stream = torch.empty_like(x), torch.cuda.Stream()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.device(0), torch.cuda.stream(stream), torch.cuda.nvtx.range("twice"):
        start.record(stream)
        twice[(64,)](x, out, x.numel(), BLOCK=64)
        end.record()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    assert start.elapsed_time(end) > 0
    assert torch.cuda.current_stream().cuda_stream == 0
    out.record_stream(stream)


def test_triton_s_handle_on_cublas(active: None) -> None:
    handle: Any = import_module("triton._C.libtriton").nvidia.cublas.CublasLt(torch.empty(16, device="cuda"))
    a, b = (torch.randn(rows, 24, device="cuda").half() for rows in (5, 7))
    exact = a.cpu().double() @ b.cpu().double().T
    c = torch.empty(5, 7, dtype=torch.float16, device="cuda")
    handle.matmul(a, b, c)
    torch.testing.assert_close(c.cpu().double(), exact, atol=1e-2, rtol=1e-3)
    d = torch.empty(5, 7, device="cuda")
    handle.gemm(a, b, c, d, 2.0, 0.5)
    torch.testing.assert_close(d.cpu().double(), 2 * exact + 0.5 * c.cpu().double(), atol=1e-4, rtol=1e-5)
    with pytest.raises(UnsupportedFeature, match="block-scaled"):
        handle.block_scaled_matmul_nvfp4(a, b, c, a, b)


def test_what_there_is_not_is_refused(active: None) -> None:
    with pytest.raises(UsageError, match="'cuda:1': there is one simulated GPU"):
        torch.zeros(1, device="cuda:1")
    with pytest.raises(UsageError, match="'cuda:3'"):
        torch.cuda.get_device_name(3)
    with pytest.raises(UnsupportedFeature, match=r"torch\.cuda\.CUDAGraph"):
        torch.cuda.CUDAGraph()
    assert torch.cuda.CUDAGraph | None  # as annotations have it


def test_torch_is_put_back() -> None:
    def held() -> list[Any]:
        modules = [dict(vars(one)) for one in (torch.cuda, torch.accelerator)]
        function = torch.autograd.function.BackwardCFunction
        stack = torch.overrides._get_current_function_mode_stack()
        tensor = "record_stream" in vars(torch.Tensor)
        return [
            *modules,
            torch.autocast.__init__,
            torch.Generator,
            function.apply,
            tensor,
            threading.Thread.start,
            stack,
        ]

    before = held()
    activate(target="sm_80")
    tensor = torch.zeros(3, device="cuda")
    with activate(target="sm_90"):
        assert tensor.is_cuda
    assert tensor.is_cuda
    deactivate()
    assert held() == before
    assert not tensor.is_cuda
