"""torch's own operators on the simulated device: their modelled time, and sums that a GPU keeps in f32."""

# Triton's and torch's values are `Any` here.
# ruff: noqa: ANN401
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import triton

from triptych.chips import GpuChip
from triptych.execution.profile import active_chip

torch: Any = pytest.importorskip("torch")
KIBI, MEBI = 1 << 10, 1 << 20


def chip() -> GpuChip:
    found = active_chip("gpu")
    assert isinstance(found, GpuChip)
    return found


def seconds(call: Callable[[], object]) -> float:
    testing: Any = triton.testing
    return testing.do_bench(call) * 1e-3


def vector(count: int, dtype: str = "float32") -> Any:
    return torch.ones(count, dtype=getattr(torch, dtype), device="cuda")


BYTES: dict[str, tuple[str, Callable[[Any], object], int]] = {
    "two are read, two written": ("float32", lambda x: x + x.clone(), (1 + 1 + 2 + 1) * 4 * MEBI),
    "the same tensor is read once": ("float32", lambda x: x + x, 2 * 4 * MEBI),
    "in place": ("float16", lambda x: x.add_(1), 2 * 2 * MEBI),
    "a reduction": ("float32", lambda x: x.sum(), 4 * MEBI + 4),
    "a view of it": ("float32", lambda x: x[: MEBI // 2].neg(), 4 * MEBI),
    "overwritten": ("float16", lambda x: x.zero_(), 2 * MEBI),
    "filling": ("float32", lambda x: torch.full_like(x, 3), 4 * MEBI),
    "converting": ("float32", lambda x: x.half().float(), (4 + 2 + 2 + 4) * MEBI),
}


@pytest.mark.parametrize(("dtype", "call", "moved"), BYTES.values(), ids=BYTES)
def test_an_operator_takes_the_time_of_its_bytes(
    active: None, dtype: str, call: Callable[[Any], object], moved: int
) -> None:
    x = vector(MEBI, dtype)
    took = seconds(lambda: call(x))
    launches = round((took - moved / chip().dram_bytes_per_s) / chip().launch_overhead_s)
    assert launches in (1, 2)
    assert took == pytest.approx(launches * chip().launch_overhead_s + moved / chip().dram_bytes_per_s, rel=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.view(4, -1).t()[1:],
        lambda x: torch.empty_like(x),
        lambda x: x.detach().expand(3, -1),
        lambda x: x.shape[0] + x.stride(0),
        lambda x: x[0].item(),
        lambda x: x.cpu() + 1,
    ],
)
def test_what_no_gpu_runs_takes_no_time(active: None, make: Callable[[Any], object]) -> None:
    x = vector(KIBI)
    assert seconds(lambda: make(x)) == 0


@pytest.mark.parametrize(
    ("dtype", "pipe"), [("float16", "tensor.f16"), ("bfloat16", "tensor.bf16"), ("float32", "f32"), ("float64", "f64")]
)
def test_a_product_takes_the_time_of_its_flops(active: None, dtype: str, pipe: str) -> None:
    a = torch.ones(512, 512, dtype=getattr(torch, dtype), device="cuda")
    flops, moved = 2 * 512**3, 2 * 512 * 512 * a.element_size()
    least = max(flops / chip().flops_per_s[pipe], moved / chip().dram_bytes_per_s)
    assert seconds(lambda: a @ a) == pytest.approx(chip().launch_overhead_s + least, rel=1e-6)


def test_a_backward_pass_takes_time(active: None) -> None:
    x = vector(MEBI).requires_grad_()
    y = x * x
    gradient = torch.ones_like(y)
    took = seconds(lambda: y.backward(gradient, retain_graph=True))
    assert took > 3 * 4 * MEBI / chip().dram_bytes_per_s


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_layer_norm_of_16_bits_sums_in_f32(active: None, dtype: str, device: str) -> None:
    kind = getattr(torch, dtype)
    torch.manual_seed(0)
    x, weight, gradient = torch.randn(1000, 64) - 2, torch.rand(64), torch.randn(1000, 64)

    def gradients(kind: Any, where: str) -> list[Any]:
        parts = [part.to(dtype=kind, device=where).requires_grad_() for part in (x.to(kind_of_x), weight.to(kind_of_x))]
        bias = torch.zeros(64, dtype=kind, device=where, requires_grad=True)
        result = torch.nn.functional.layer_norm(parts[0], (64,), parts[1], bias)
        result.backward(gradient.to(kind_of_x).to(dtype=kind, device=where))
        return [result.detach().cpu().double(), *(part.grad.cpu().double() for part in (*parts, bias))]

    kind_of_x = kind
    exact, found = gradients(torch.float64, "cpu"), gradients(kind, device)
    errors = [((a - b).abs().max() / b.abs().max()).item() for a, b in zip(found, exact, strict=True)]
    assert (max(errors) < 1.01 * torch.finfo(kind).eps) == (device == "cuda"), errors


def test_rows_of_an_embedding_sum_in_f32(active: None) -> None:
    chosen = torch.zeros(4096, dtype=torch.int64, device="cuda")
    table = torch.zeros(2, 8, dtype=torch.float16, device="cuda", requires_grad=True)
    torch.nn.functional.embedding(chosen, table).backward(torch.full((4096, 8), 0.1, device="cuda").half())
    assert table.grad.dtype == torch.float16
    assert table.grad[0].tolist() == pytest.approx([4096 * float(torch.tensor(0.1).half())] * 8, rel=1e-3)
    indexed = torch.zeros(2, 8, dtype=torch.float16, device="cuda", requires_grad=True)
    indexed[chosen].backward(torch.full((4096, 8), 0.1, device="cuda").half())
    assert torch.equal(indexed.grad, table.grad)


def test_products_with_a_type_of_their_own(active: None) -> None:
    a, b, c = (torch.randn(shape, device="cuda").half() for shape in ((3, 64), (64, 5), (3, 5)))
    exact = a.float() @ b.float()
    assert torch.equal(torch.mm(a, b, out_dtype=torch.float32), exact)
    assert torch.equal(torch.bmm(a[None], b[None], torch.float32)[0], exact)
    out = torch.zeros(3, 5, device="cuda")
    torch.addmm(c, a, b, out_dtype=torch.float32, beta=2, out=out)
    assert torch.equal(out, torch.addmm(c.float(), a.float(), b.float(), beta=2))
    assert out.is_cuda
    took = seconds(lambda: torch.mm(a, b, out_dtype=torch.float32))
    assert took == pytest.approx(seconds(lambda: torch.mm(a, b)), rel=0.01)
    same = torch.empty(3, 5, dtype=torch.float16, device="cuda")
    assert seconds(lambda: torch.mm(a, b, out=same)) == seconds(lambda: torch.mm(a, b)), "it reads no `out`"
