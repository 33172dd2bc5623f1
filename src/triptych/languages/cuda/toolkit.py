"""Where NVIDIA's compiler library and headers lie: in pip's wheels, or in /usr/local/cuda. No driver is needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from triptych.core.errors import UsageError

_LIBRARY = "libnvrtc.so.*"
_INCLUDE_FOLDERS = ("cuda_runtime", "cuda_crt", "cuda_cccl", "cuda_nvcc")
"""Folders of the wheels for CUDA 12; those for CUDA 13 share one, `cu13`."""
_SYSTEM = Path("/usr/local/cuda")
_LIBCUXX_HEADER = Path("nv", "target")

STUBS = Path(__file__).parent / "headers"
"""Empty headers of the host's C library: sources include them for `printf` and `assert`, which NVRTC has built in."""


@dataclass(frozen=True, slots=True)
class Toolkit:
    """The compiler's library and its folders of headers, in the order of search."""

    library: Path
    includes: tuple[Path, ...]


@cache
def toolkit() -> Toolkit:
    """The newest toolkit that is installed; wheels go before the system's.

    Raises:
        UsageError: where there is none.
    """
    for root in _roots():
        libraries = [path for path in root.glob(f"lib*/{_LIBRARY}") if ".alt." not in path.name]
        if libraries:
            return Toolkit(max(libraries, key=_version), tuple(_includes(root)))
    raise UsageError(
        "NVIDIA's runtime compiler (libnvrtc) is not installed",
        hint="pip install nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl",
    )


def _version(library: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in library.name.removeprefix("libnvrtc.so.").split(".") if part.isdigit())


def _roots() -> Iterator[Path]:
    """Folders that may hold `lib/libnvrtc.so.*`, the newest wheel first."""
    spec = find_spec("nvidia")
    for place in spec.submodule_search_locations or () if spec is not None else ():
        folder = Path(place)
        yield from sorted(folder.glob("cu[0-9][0-9]"), reverse=True)
        yield folder / "cuda_nvrtc"
    yield _SYSTEM


def _includes(root: Path) -> Iterator[Path]:
    """The wheels' folders of headers; the system's too where no wheel brings libcu++."""
    roots = [root, *(root.parent / name for name in _INCLUDE_FOLDERS)] if root.name == "cuda_nvrtc" else [root]
    found = [folder for base in roots for folder in (base / "include", base / "include" / "cccl") if folder.is_dir()]
    yield from found
    if root != _SYSTEM and not any((folder / _LIBCUXX_HEADER).is_file() for folder in found):
        yield from _includes(_SYSTEM)
