"""Autotuning, `do_bench` and events on the modelled clock."""

# Triton's language and host side have no types: kernels, and what was recorded of launches, are `Any` here.
# ruff: noqa: ANN001, ANN201, ANN401
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportAttributeAccessIssue=false, reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportArgumentType=false, reportInvalidTypeForm=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from triptych.core.errors import UsageError
from triptych.execution.profile import profile
from triptych.languages.triton import activate, deactivate

stale_do_bench: Any = triton.testing.do_bench
jit: Any = triton.jit


def add_one(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + offsets, tl.load(x + offsets, mask=offsets < n) + 1, mask=offsets < n)


def tuned(**options: Any) -> Any:
    """The kernel with three configurations; the recording machine finds the fewest blocks fastest."""
    configurations = [triton.Config({"BLOCK": block, "EVEN": True}, num_warps=2) for block in (64, 256, 128)]
    return triton.autotune(configurations, key=["n"], **options)(jit(add_one))


def grid(meta: dict[str, int]) -> tuple[int]:
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def test_autotune_picks_by_modelled_time(recorder: Any) -> None:
    kernel, x = tuned(), np.zeros(1 << 20, np.float32)
    kernel[grid](x, x.size)
    assert kernel.best_config.kwargs == {"BLOCK": 256, "EVEN": True}
    assert [launch.grid[0] for launch in recorder.launches] == [1 << 14, 1 << 12, 1 << 13, 1 << 12]
    kernel[grid](x, x.size)
    assert len(recorder.launches) == 5, "the choice is kept"


def test_a_profile_has_the_times_of_all_configurations(recorder: Any) -> None:
    kernel, x = tuned(), np.zeros(1 << 20, np.float32)
    with profile(chip="a100", target="sm_80") as seen:
        kernel[grid](x, x.size)
        kernel[grid](x, x.size)
    (tuning,) = seen.tunings
    assert (tuning.kernel, tuning.chip) == ("add_one", "NVIDIA A100 SXM4 80 GB")
    assert tuning.problem.startswith(f"{1 << 20}, ")
    assert [label.split()[0] for label in tuning.seconds] == ["BLOCK=64", "BLOCK=256", "BLOCK=128"]
    assert tuning.chosen == min(tuning.seconds, key=lambda label: tuning.seconds[label])
    tried = [launch.roofline.estimate_s for launch in seen.launches[:3]]
    assert list(tuning.seconds.values()) == pytest.approx(tried)
    assert tuning.call_site is not None
    assert tuning.call_site.file == __file__


def test_a_choice_belongs_to_its_device(recorder: Any) -> None:
    kernel, x = tuned(), np.zeros(1024, np.float32)
    kernel[grid](x, x.size)
    with activate(chip="h100", target="sm_80"):
        kernel[grid](x, x.size)
        assert len(recorder.launches) == 8, "tuned again"
    kernel[grid](x, x.size)
    assert len(recorder.launches) == 9
    deactivate()
    assert kernel.cache == {}
    assert "do_bench" not in vars(kernel)


def test_autotune_zeroes_and_restores_numpy_arrays(recorder: Any) -> None:
    x = np.ones(1024, np.float32)
    zeroed = tuned(reset_to_zero=["x"])
    zeroed[grid](x, x.size)
    assert not x.any()
    x[:] = 3
    restored = tuned(restore_value=["x"])
    restored[grid](x, x.size)
    assert (x == 3).all()


def test_heuristics(recorder: Any) -> None:
    rules = {"EVEN": lambda given: given["n"] % given["BLOCK"] == 0, "BLOCK": lambda given: 128}
    kernel = triton.heuristics({"BLOCK": rules["BLOCK"], "EVEN": rules["EVEN"]})(jit(add_one))
    x = np.zeros(1024, np.float32)
    kernel[grid](x, x.size)
    assert recorder.launches[0].grid == (8, 1, 1)


def test_do_bench_gives_the_modelled_time(recorder: Any) -> None:
    kernel, x = jit(add_one), np.zeros(1 << 20, np.float32)

    def call() -> None:
        kernel[(1 << 13,)](x, x.size, BLOCK=128, EVEN=True)

    with profile(chip="a100", target="sm_80") as seen:
        milliseconds = triton.testing.do_bench(call)
    assert len(seen.launches) == 2, "one run to warm up, one that counts"
    assert milliseconds == pytest.approx(seen.launches[1].roofline.estimate_s * 1e3)
    assert triton.testing.do_bench(call, quantiles=[0.5, 0.2, 0.8]) == pytest.approx([milliseconds] * 3)
    assert triton.testing.do_bench(call, quantiles=[0.5], return_mode="min") == pytest.approx(milliseconds)
    assert triton.testing.do_bench(call, return_mode="all") == pytest.approx([milliseconds])
    assert triton.testing.do_bench_cudagraph(call) == pytest.approx(milliseconds)


def test_do_bench_from_before_the_activation_is_refused(recorder: Any) -> None:
    with pytest.raises(UsageError, match=r"imported from triton\.testing before"):
        stale_do_bench(lambda: None)


def test_events(recorder: Any) -> None:
    kernel, x = jit(add_one), np.zeros(1 << 20, np.float32)
    interface: Any = triton.runtime.driver.active.get_device_interface()
    start, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
    with pytest.raises(UsageError, match="not recorded"):
        start.elapsed_time(end)
    start.record()
    kernel[(1 << 13,)](x, x.size, BLOCK=128, EVEN=True)
    end.record()
    interface.synchronize()
    assert start.query()
    assert start.elapsed_time(end) > 0


def test_device_properties(active: None) -> None:
    driver: Any = triton.runtime.driver.active
    properties = driver.utils.get_device_properties(driver.get_current_device())
    assert properties["multiprocessor_count"] == 108
    assert properties["warpSize"] == 32
    gigabytes = properties["mem_clock_rate"] * properties["mem_bus_width"] * 2 / 1e6 / 8
    assert 1e3 < gigabytes < 3e3
    assert driver.get_device_capability() == (8, 0)
    assert driver.map_python_to_cpp_type("*fp32") == "CUdeviceptr"


def test_modelled_choices_never_reach_the_disk(recorder: Any, triton_cache: Path) -> None:
    kernel, x = tuned(cache_results=True), np.zeros(1024, np.float32)
    kernel[grid](x, x.size)
    assert not list(triton_cache.rglob("*.autotune.json"))
    deactivate()
    assert kernel.cache_results
