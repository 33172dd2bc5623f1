"""Nothing changes in Triton until `activate()`, and nothing is left behind by `deactivate()`."""

# Triton's language and host side have no types: kernels, and what was recorded of launches, are `Any` here.
# ruff: noqa: ANN401
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportAttributeAccessIssue=false, reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportArgumentType=false, reportInvalidTypeForm=false

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import triton
import triton.backends
from triton.runtime import autotuner, jit

import triptych
from triptych import chips
from triptych.core.errors import UnknownName, UnsupportedFeature, UsageError
from triptych.execution.profile import active_chip, active_target
from triptych.languages.triton import activate, deactivate, internals, version

FUSION = "TRITON_DEFAULT_FP_FUSION"


def touched() -> list[Any]:
    """Everything of Triton's that an activation replaces."""
    kernel = triton.compiler.CompiledKernel
    return [
        jit.native_specialize_impl,
        triton.knobs.runtime.add_stages_inspection_hook,
        triton.testing.do_bench,
        triton.testing.do_bench_cudagraph,
        autotuner.Autotuner.run,
        triton.compiler.compiler.get_cache_key,
        triton.testing.Mark.run,
        vars(internals.cuda_driver)["is_active"],
        vars(kernel)["_init_handles"],
        vars(jit.JITCallable)["cache_key"],
        hasattr(kernel, "n_regs"),
        hasattr(kernel, "n_spills"),
        triton.runtime.driver._active,
        os.environ.get(FUSION),
        triton.knobs.language.default_fp_fusion,
    ]


def test_everything_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FUSION, raising=False)
    before = touched()
    activate(chip="a100", target="sm_80")
    during = touched()
    deactivate()
    assert touched() == before
    assert during[0] is not before[0]
    assert during[-2] == "1"
    deactivate()
    assert touched() == before


def test_what_the_user_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FUSION, "0")
    with activate(target="sm_80"):
        assert os.environ[FUSION] == "0"
    assert os.environ[FUSION] == "0"


def test_a_stage_hook_of_the_user_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, ...]] = []

    def users_hook(*arguments: Any) -> tuple[str, str]:
        seen.append(arguments)
        return "key", "hash"

    monkeypatch.setattr(triton.knobs.runtime, "add_stages_inspection_hook", users_hook)
    with activate(target="sm_80"):
        hook: Any = triton.knobs.runtime.add_stages_inspection_hook
        key, digest = hook()
        assert key.startswith("key")
        assert digest.startswith("hash")
        assert key != "key"
        stages: dict[str, Any] = {"ptx": None, "cubin": None}
        hook("backend", stages, "options", "language", 80)
        assert seen[-1] == ("backend", stages, "options", "language", 80)
        assert stages["cubin"]("text", {}) == b"text"
    assert triton.knobs.runtime.add_stages_inspection_hook is users_hook


def target() -> Any:
    return triton.runtime.driver.active.get_current_target()


def test_scopes_nest() -> None:
    nvidia = triton.backends.backends["nvidia"].driver.is_active()
    with activate(chip="a100", target="sm_80"):
        outer = triton.runtime.driver.active.get_current_device()
        assert (target().backend, target().arch, target().warp_size) == ("cuda", 80, 32)
        with activate(chip="h100"):
            assert target().arch == 90
            assert triton.runtime.driver.active.get_current_device() != outer
        assert target().arch == 80
        assert triton.runtime.driver.active.get_current_device() == outer
    assert triton.backends.backends["nvidia"].driver.is_active() == nvidia


def test_the_settings_decide_where_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIPTYCH_CHIP", "a100")
    with activate():
        assert target().arch == 80
        monkeypatch.setenv("TRIPTYCH_TARGET", "sm_89")
        assert target().arch == 89
        with activate(chip="h100"):
            assert target().arch == 90, "a chip that is named brings its own target"


def test_mistakes_leave_the_driver_inactive() -> None:
    before = touched()
    with pytest.raises(UnknownName, match="chip"):
        activate(chip="no such chip")
    with pytest.raises(UsageError, match="gfx942"):
        activate(target="gfx942")
    with pytest.raises(UsageError, match="trn2"):
        activate(chip="trn2")
    assert touched() == before


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """An environment in which triptych is installed, as far as entry points go."""
    metadata = tmp_path / "triptych-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: triptych\nVersion: 0\n")
    (metadata / "entry_points.txt").write_text("[triton.backends]\ntriptych = triptych.languages.triton.backend\n")
    source = next(iter(triptych.__path__))
    # No GPU is to be seen, also where there is one: its driver would be active beside ours.
    return {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(source).parent}"}


def run_python(code: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_installing_changes_nothing(installed: dict[str, str]) -> None:
    code = """
import sys, triton
found = triton.backends.backends["triptych"]
assert not found.driver.is_active()
assert not found.compiler.supports_target(triton.backends.compiler.GPUTarget("cuda", 80, 32))
assert len(triton.backends.backends) == 3
try:
    triton.runtime.driver.active
except RuntimeError as error:
    assert str(error).startswith("0 active drivers"), error
else:
    raise AssertionError("a driver is active")
print(*sorted(name for name in sys.modules if name.startswith("triptych")))
"""
    loaded = run_python(code, installed).split()
    package = "triptych.languages.triton"
    backend = [f"{package}.backend", f"{package}.backend.compiler", f"{package}.backend.driver"]
    assert loaded == ["triptych", "triptych.languages", package, *backend]


def test_the_discovered_driver_is_ours_while_active(installed: dict[str, str]) -> None:
    code = """
import triton
from triptych.languages.triton import activate, deactivate, internals
activate(chip="a100", target="sm_80")
found = triton.backends.backends["triptych"].driver
assert found.is_active() and isinstance(triton.runtime.driver.active, found)
triton.runtime.driver.reset_active()
assert isinstance(triton.runtime.driver.active, found)
import torch
assert torch.cuda.is_available() and triton.runtime.driver.active.get_active_torch_device().type == "cuda"
assert torch.zeros(1, device="cuda").is_cuda
deactivate()
assert not found.is_active()
assert not torch.cuda.is_available()
"""
    pytest.importorskip("torch")
    run_python(code, installed)


def test_the_interpreter_is_left_alone(installed: dict[str, str]) -> None:
    code = """
import triton
from triton.runtime.interpreter import InterpretedFunction
from triptych.languages.triton import activate

def kernel(x):
    pass

with activate(target="sm_80"):
    assert isinstance(triton.jit(kernel), InterpretedFunction)
    import torch
    assert triton.runtime.driver.active.get_active_torch_device().type == "cpu"
    assert not torch.cuda.is_available()
"""
    pytest.importorskip("torch")
    run_python(code, {**installed, "TRITON_INTERPRET": "1"})


def test_a_triton_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton, "__version__", "3.5.1")
    with pytest.raises(UnsupportedFeature, match=r"is too old: triptych works with 3\.6 to 3\.9"):
        activate()


def test_a_newer_triton_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton, "__version__", "3.10.0")
    with pytest.warns(UserWarning, match=r"tried with Triton 3\.6 to 3\.9, not with"), activate():
        pass


@pytest.mark.parametrize("tried", version.TESTED)
def test_the_ends_of_what_was_tried(tried: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton, "__version__", f"{tried[0]}.{tried[1]}.0+git1234")
    version.check_version()
    assert version.installed_version() == tried


def test_no_triton_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(UnsupportedFeature, match="Triton is not installed") as caught:
        triptych.triton.activate()
    assert caught.value.hint == "pip install 'triton>=3.6'"


def test_the_chip_of_an_activation_is_in_force_for_profiles_too() -> None:
    with activate(chip="a100-80"):
        with triptych.profile() as plain:
            assert plain.chip.name == "a100-80"
            assert (active_chip().name, active_target()) == ("a100-80", "sm_80")
        with triptych.profile(chip="h100"):
            assert (active_chip().name, active_target()) == ("h100", "sm_90")
        with triptych.profile(target="sm_75"):
            assert (active_chip().name, active_target()) == ("a100-80", "sm_75")
        with activate(target="sm_89"):
            assert (active_chip().name, active_target()) == ("h100", "sm_89")
        assert (active_chip().name, active_target()) == ("a100-80", "sm_80")
    with activate(chip=Path(chips.__file__).parent / "data" / "t4.toml"):
        assert (active_chip().name, active_target()) == ("t4", "sm_75")
    with triptych.profile() as outer, activate(chip="a100-80"):
        assert outer.chip.name == "h100"  # it was opened before
        assert (active_chip().name, active_target()) == ("a100-80", "sm_80")
    assert (active_chip().name, active_target()) == ("h100", "sm_90")
