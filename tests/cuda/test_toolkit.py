from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from triptych.core.errors import UsageError
from triptych.languages.cuda import toolkit as module
from triptych.languages.cuda.toolkit import Toolkit, toolkit, where_to_get


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty site-packages, with no toolkit of the system's."""
    folder = tmp_path / "site"
    (folder / "nvidia").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(folder)])
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    monkeypatch.setattr(module, "SYSTEM", tmp_path / "system")
    toolkit.cache_clear()
    yield folder
    toolkit.cache_clear()


def make(root: Path, files: Sequence[str]) -> None:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def test_wheels_of_cuda_13(site: Path) -> None:
    make(site / "nvidia/cu13", ["lib/libnvrtc.so.13", "lib/libnvrtc-builtins.so.13.5", "include/cccl/nv/target"])
    root = site / "nvidia/cu13"
    assert toolkit() == Toolkit(root / "lib/libnvrtc.so.13", (root / "include", root / "include/cccl"))


def test_wheels_of_cuda_12(site: Path) -> None:
    make(site / "nvidia", ["cuda_nvrtc/lib/libnvrtc.so.12", "cuda_nvrtc/lib/libnvrtc.alt.so.12"])
    make(site / "nvidia", ["cuda_runtime/include/cuda_fp16.h", "cuda_cccl/include/nv/target"])
    found = toolkit()
    assert found.library == site / "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
    assert found.includes == (site / "nvidia/cuda_runtime/include", site / "nvidia/cuda_cccl/include")


def test_wheels_of_cuda_12_with_other_libraries(site: Path) -> None:
    make(site / "nvidia", ["cuda_nvrtc/lib/libnvrtc.so.12", "cuda_cccl/include/nv/target"])
    make(site / "nvidia", ["curand/include/curand_kernel.h", "cublas/include/cublas_v2.h"])
    assert site / "nvidia/curand/include" in toolkit().includes
    assert site / "nvidia/cublas/include" in toolkit().includes
    assert "pip install nvidia-cufft-cu12 " in where_to_get("cufft.h")


def test_wheels_in_several_folders(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers that `PYTHONPATH` brings, for the compiler of the environment: the compiler's own go first."""
    other = site.parent / "other"
    monkeypatch.setattr(sys, "path", [str(other), str(site)])
    make(site / "nvidia/cu13", ["lib/libnvrtc.so.13", "include/cuda_fp16.h"])
    make(other / "nvidia", ["cu13/include/crt/mma.h", "cu13/include/cccl/nv/target", "cu12/include/cuda_fp16.h"])
    make(site.parent / "system", ["include/nv/target"])
    own, others = site / "nvidia/cu13/include", other / "nvidia/cu13/include"
    assert toolkit().includes == (own, others, others / "cccl")


def test_newest_wheel_goes_first(site: Path) -> None:
    make(site / "nvidia", ["cu13/lib/libnvrtc.so.13", "cu14/lib/libnvrtc.so.14", "cuda_nvrtc/lib/libnvrtc.so.12"])
    assert toolkit().library.name == "libnvrtc.so.14"


def test_headers_of_the_system_where_the_wheels_have_none(site: Path) -> None:
    make(site / "nvidia/cu13", ["lib/libnvrtc.so.13", "include/cuda_fp16.h"])
    make(site.parent / "system", ["include/cccl/nv/target", "lib64/libnvrtc.so.13"])
    system = site.parent / "system/include"
    assert toolkit().includes == (site / "nvidia/cu13/include", system, system / "cccl")


def test_toolkit_of_the_system_alone(site: Path) -> None:
    make(site.parent / "system", ["lib64/libnvrtc.so.12.8.93", "lib64/libnvrtc.so.12", "include/nv/target"])
    assert toolkit().library.parent == site.parent / "system/lib64"


def test_nothing_installed(site: Path) -> None:
    with pytest.raises(UsageError, match="libnvrtc\\) is not installed") as caught:
        toolkit()
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("pip install nvidia-cuda-nvrtc")
    assert site.is_dir()
