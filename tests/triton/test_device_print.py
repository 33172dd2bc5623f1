"""`tl.device_print`, `tl.device_assert` and functions that are not inlined, from Triton to the machine."""

# Triton's language and host side have no types: kernels are `Any` here.
# ruff: noqa: ANN001, ANN201
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportInvalidTypeForm=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

import triptych as tt

jit: Any = triton.jit


@jit
def show(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=-1)
    tl.device_print("value", value)
    tl.device_print("half", value.to(tl.float32) / 2, i)
    tl.device_print("bits", value, hex=True)
    tl.device_print("many", n)


@jit
def check(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i)
    tl.device_assert(value < 100, "all values are below 100")
    tl.store(y + i, value * 2)


@jit(noinline=True)
def apart(a, b):
    return a * 3 + b


@jit
def calls(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) + apart(tl.load(x), 1) + apart(tl.load(x + 1), tl.load(x + 2)))


@pytest.mark.usefixtures("active")
def test_device_print(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(10, 74, dtype=np.int32)
    show[(2,)](x, 60, BLOCK=32, num_warps=1)
    lines = capsys.readouterr().out.splitlines()
    values = [int(x[i]) if i < 60 else -1 for i in range(64)]
    for block in range(2):
        part = lines[block * len(lines) // 2 : (block + 1) * len(lines) // 2]
        own = values[32 * block : 32 * block + 32]
        place = [f"pid ({block}, 0, 0) idx ({lane:2})" for lane in range(32)]
        assert part[:32] == [f"{p} value: {v}" for p, v in zip(place, own, strict=True)]
        assert part[32:64] == [f"{p} half: (operand 0) {v / 2:f}" for p, v in zip(place, own, strict=True)]
        assert part[96:128] == [f"{p} bits: 0x{v % 2**32:08x}" for p, v in zip(place, own, strict=True)]
        assert set(part[128:]) == {f"pid ({block}, 0, 0) idx () many: 60"}
    assert lines[64:66] == [f"pid (0, 0, 0) idx ({lane:2}) half: (operand 1) {lane}" for lane in range(2)]


@pytest.mark.usefixtures("active")
def test_device_assert() -> None:
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    check[(1,)](x, y, BLOCK=64, debug=True)
    assert (y == 2 * x).all()
    with tt.profile(chip="a100") as profile, pytest.raises(tt.AssertionFailure) as caught:
        check[(1,)](x + 60, y, BLOCK=64, debug=True)
    fault = caught.value
    assert fault.message.endswith("block: [0,0,0], thread: [40,0,0] Assertion `all values are below 100` failed.")
    assert fault.where is not None
    assert fault.where.text == 'tl.device_assert(value < 100, "all values are below 100")'
    (finding,) = profile.launches[-1].findings
    assert (finding.check, finding.where, finding.thread) == ("assert", fault.where, (40, 0, 0))


@pytest.mark.usefixtures("active")
def test_a_function_that_is_not_inlined() -> None:
    x, y = np.arange(5, 37, dtype=np.int32), np.zeros(32, np.int32)
    calls[(1,)](x, y, BLOCK=32)
    np.testing.assert_array_equal(y, x + (3 * 5 + 1) + (3 * 6 + 7))
