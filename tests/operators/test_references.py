"""References against others' formulas: torch in float64 and its own gradients, or plain loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, TypeAlias, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as torch_functions

from triptych.operators import OPERATORS, case
from triptych.operators.operator import Values

Tensor: TypeAlias = Any
Given: TypeAlias = Mapping[str, Tensor]
Witness: TypeAlias = Callable[[Values, Given], Any]
F: Any = torch_functions
TENSORS: Any = torch


NAMES = {
    "conv2d": ("tiny", "tiny_same"),
    "attention": ("tiny", "tiny_full"),
    "attention_backward": ("tiny", "tiny_full"),
}


def pick(given: Given, names: str) -> list[Tensor]:
    return [given[name] for name in names.split()]


def layer_norm_backward(size: Values, given: Given) -> list[Tensor]:
    grad_y, x, weight = pick(given, "grad_y x weight")
    leaves = [each.clone().requires_grad_() for each in (x, weight, TENSORS.zeros_like(weight))]
    y = F.layer_norm(leaves[0], weight.shape, leaves[1], leaves[2], eps=1e-5)
    return list(TENSORS.autograd.grad(y, leaves, grad_y))


def rms_norm_backward(size: Values, given: Given) -> list[Tensor]:
    grad_y, x, weight = pick(given, "grad_y x weight")
    leaves = [each.clone().requires_grad_() for each in (x, weight)]
    y = F.rms_norm(leaves[0], weight.shape, leaves[1], eps=1e-5)
    return list(TENSORS.autograd.grad(y, leaves, grad_y))


def rope(size: Values, given: Given) -> Tensor:
    """By complex numbers: x₁ + i x₂, turned by e^(i angle)."""
    x, cos, sin = pick(given, "x cos sin")
    half = x.shape[-1] // 2
    turned = TENSORS.complex(x[..., :half], x[..., half:]) * TENSORS.complex(cos, sin)[:, None]
    return TENSORS.cat((turned.real, turned.imag), -1)


def attend(q: Tensor, k: Tensor, v: Tensor, causal: int) -> Tensor:
    """Of `(batch, heads, n, d)`, the mask spelt out."""
    n, n_kv = q.shape[-2], k.shape[-2]
    seen = TENSORS.ones(n, n_kv, dtype=TENSORS.bool).tril(n_kv - n) if causal else None
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)


def attention(size: Values, given: Given) -> Tensor:
    q, k, v = pick(given, "q k v")
    return attend(q, k, v, size["causal"])


def attention_backward(size: Values, given: Given) -> list[Tensor]:
    q, k, v = (given[name].clone().requires_grad_() for name in "qkv")
    return list(TENSORS.autograd.grad(attend(q, k, v, size["causal"]), (q, k, v), given["grad_out"]))


def attention_varlen(size: Values, given: Given) -> Tensor:
    outputs: list[Tensor] = []
    for first, last in pairwise(given["offsets"].tolist()):
        q, k, v = (x[None, first:last].transpose(1, 2) for x in pick(given, "q k v"))
        outputs.append(attend(q, k, v, size["causal"])[0].transpose(0, 1))
    return TENSORS.cat(outputs)


def paged_attention(size: Values, given: Given) -> Tensor:
    rows: list[Tensor] = []
    for query, pages, length in zip(*pick(given, "q page_table lengths"), strict=True):
        places = [(int(pages[token // size["page"]]), token % size["page"]) for token in range(int(length))]
        keys, values = (TENSORS.stack([x[place] for place in places], 1) for x in pick(given, "k_pages v_pages"))
        rows.append(attend(query[None, :, None], keys[None], values[None], 0)[0, :, 0])
    return TENSORS.stack(rows)


def grouped_matmul(size: Values, given: Given) -> Tensor:
    a, b, offsets = pick(given, "a b offsets")
    return TENSORS.cat([a[first:last] @ b[g] for g, (first, last) in enumerate(pairwise(offsets.tolist()))])


def moe_matmul(size: Values, given: Given) -> Tensor:
    x, w, chosen, weights = pick(given, "x w chosen weights")
    rows = [
        sum(weight * (token @ w[expert]) for expert, weight in zip(experts, shares, strict=True))
        for token, experts, shares in zip(x, chosen.tolist(), weights, strict=True)
    ]
    return TENSORS.stack(rows)


def topk_routing(size: Values, given: Given) -> list[Tensor]:
    """A stable sort, by Python."""
    logits = given["logits"]
    rows = [sorted(range(len(row)), key=lambda column, row=row: -row[column]) for row in logits.tolist()]
    chosen = TENSORS.tensor(rows)[:, : size["top_k"]]
    return [logits.gather(1, chosen).softmax(1), chosen]


def mamba_scan(size: Values, given: Given) -> Tensor:
    """Each channel's state by itself, as a sum over all that came before."""
    u, delta, a, b, c, d = pick(given, "u delta a b c d")
    y = d[:, None] * u
    for t in range(u.shape[2]):
        for s in range(t + 1):
            decay = TENSORS.exp(a * delta[:, :, s + 1 : t + 1].sum(-1)[..., None])
            into = delta[:, :, s, None] * b[:, None, :, s] * u[:, :, s, None]
            y[:, :, t] += (decay * into * c[:, None, :, t]).sum(-1)
    return y


def sort(size: Values, given: Given) -> list[Tensor]:
    keys, values = pick(given, "keys values")
    pairs = sorted(zip(keys.tolist(), values.tolist(), strict=True), key=lambda pair: pair[0])
    return [TENSORS.tensor([pair[place] for pair in pairs], dtype=x.dtype) for place, x in enumerate((keys, values))]


def conv1d(size: Values, given: Given) -> Tensor:
    x, weight, bias = pick(given, "x weight bias")
    width = size["width"]
    return F.conv1d(F.pad(x, (width - 1, 0)), weight[:, None], bias, groups=size["channels"])


WITNESSES: Mapping[str, Witness] = {
    "vec_add": lambda size, x: TENSORS.add(x["a"], x["b"]),
    "elementwise_chain": lambda size, x: TENSORS.sigmoid(TENSORS.addcmul(x["c"], x["a"], x["b"])) * x["a"] - x["c"],
    "swiglu": lambda size, x: F.silu(x["gate"]) * x["up"],
    "rope": rope,
    "transpose": lambda size, x: TENSORS.einsum("ij->ji", x["x"]),
    "embedding": lambda size, x: F.embedding(x["ids"], x["table"]),
    "reduce_sum": lambda size, x: TENSORS.tensor([math.fsum(row) for row in x["x"].tolist()], dtype=x["x"].dtype),
    "softmax": lambda size, x: F.softmax(x["x"], -1),
    "log_softmax": lambda size, x: F.log_softmax(x["x"], -1),
    "cross_entropy": lambda size, x: F.cross_entropy(x["logits"], x["targets"], reduction="none"),
    "rms_norm": lambda size, x: F.rms_norm(x["x"], x["weight"].shape, x["weight"], eps=1e-5),
    "rms_norm_backward": rms_norm_backward,
    "layer_norm": lambda size, x: F.layer_norm(x["x"], x["weight"].shape, x["weight"], x["bias"], eps=1e-5),
    "layer_norm_backward": layer_norm_backward,
    "matmul": lambda size, x: TENSORS.einsum("ik,kj->ij", x["a"], x["b"]),
    "batched_matmul": lambda size, x: TENSORS.einsum("bik,bkj->bij", x["a"], x["b"]),
    "grouped_matmul": grouped_matmul,
    "matmul_epilogue": lambda size, x: F.gelu(F.linear(x["a"], x["b"].T, x["bias"])) + x["residual"],
    "quantised_matmul": lambda size, x: (x["scale_a"][:, None] * x["a"]) @ (x["scale_b"][:, None] * x["b"]).T,
    "gelu_linear": lambda size, x: F.gelu(F.linear(x["x"], x["w"], x["b"])),
    "attention": attention,
    "attention_varlen": attention_varlen,
    "attention_backward": attention_backward,
    "paged_attention": paged_attention,
    "topk_routing": topk_routing,
    "moe_matmul": moe_matmul,
    "cumsum": lambda size, x: TENSORS.cumsum(x["x"], -1),
    "mamba_scan": mamba_scan,
    "histogram": lambda size, x: TENSORS.tensor([x["x"].tolist().count(number) for number in range(size["bins"])]),
    "sort": sort,
    "conv1d_depthwise": conv1d,
    "conv2d": lambda size, x: F.conv2d(x["x"], x["weight"], stride=size["stride"], padding=size["padding"]),
}


def test_every_operator_has_a_witness() -> None:
    assert list(WITNESSES) == list(OPERATORS)


@pytest.mark.parametrize("name", WITNESSES)
def test_references(name: str) -> None:
    """To float64's roundings: of an element, and of the largest one where sums cancel."""
    for size in NAMES.get(name, ("tiny",)):
        for dtype in OPERATORS[name].dtypes[:1] if name != "quantised_matmul" else ("s8", "f8e4m3fn"):
            one = case(OPERATORS[name], size, dtype, OPERATORS[name].distributions[0].name, seed=7)
            found = WITNESSES[name](one.size, {key: TENSORS.tensor(array) for key, array in one.given.items()})
            outputs = cast("list[Tensor]", found if type(found) is list else [found])
            for output, expected in zip(outputs, one.expected, strict=True):
                scale = float(np.abs(expected).max())
                # mean, rstd, out and log_sums that gradients get were rounded to f32, of which torch knows nothing
                loss = 1e-6 if "backward" in name else 1e-13
                np.testing.assert_allclose(output.numpy(), expected, rtol=1e-12, atol=loss * scale)


SPECIAL = {"matmul", "cumsum", "vec_add", "transpose", "reduce_sum", "softmax", "log_softmax", "embedding"}


@pytest.mark.parametrize("name", sorted(SPECIAL))
def test_references_of_nan_and_infinities(name: str) -> None:
    one = case(OPERATORS[name], "tiny", "f32", "special")
    given = {key: TENSORS.tensor(array) for key, array in one.given.items()}
    found = one.given["x"].sum(-1) if name == "reduce_sum" else WITNESSES[name](one.size, given).numpy()
    np.testing.assert_allclose(found, one.truth, rtol=1e-12)
    assert np.isnan(one.truth).any()


def test_special_values_are_where_they_are_said_to_be() -> None:
    named = {one.name for one in OPERATORS.values() if any(each.name == "special" for each in one.distributions)}
    assert named == SPECIAL
