"""Where NVIDIA's compiler library and headers lie: in pip's wheels, or in /usr/local/cuda. No driver is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from triptych.core.errors import UsageError

_LIBRARY = "libnvrtc.so.*"
_PACKAGES: Mapping[str, str] = {
    r"(cooperative_groups|cuda_|cuda\.h|math_constants|vector_)": "cuda-runtime",
    r"(crt/|mma\.h|sm_\d)": "cuda-crt",
    r"(cub|thrust|cuda|nv)/": "cuda-cccl",
    r"curand": "curand",
    r"(cublas|nvblas)": "cublas",
    r"cufft": "cufft",
    r"cusparse": "cusparse",
    r"cusolver": "cusolver",
    r"cudnn": "cudnn",
    r"nvtx": "nvtx",
}
"""How names of headers begin, and the wheel that brings them, without the `nvidia-` that its name begins with."""
_INCLUDE_FOLDERS = tuple(name.replace("-", "_") for name in (*_PACKAGES.values(), "cuda-nvcc"))
"""Folders of the wheels for CUDA 12; those for CUDA 13 share one, `cu13`."""
SYSTEM = Path("/usr/local/cuda")
"""Where NVIDIA's installer puts a toolkit: what is looked at where wheels lack something."""
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


def where_to_get(header: str) -> str:
    """What to do where the compiler does not find a header."""
    wheel = next((name for begins, name in _PACKAGES.items() if re.match(begins, header)), None)
    if wheel is None:
        return f"name the folder that holds it: options=['-I', 'folder'], where 'folder/{header}' is the file"
    # Wheels for CUDA 13 and later have no suffix.
    suffix = "" if re.fullmatch(r"cu\d+", toolkit().library.parent.parent.name) else "-cu12"
    return f"pip install nvidia-{wheel}{suffix} brings it; headers from elsewhere: options=['-I', 'folder']"


def _version(library: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in library.name.removeprefix("libnvrtc.so.").split(".") if part.isdigit())


def _roots() -> Iterator[Path]:
    """Folders that may hold `lib/libnvrtc.so.*`, the newest wheel first."""
    for folder in _wheels():
        yield from sorted(folder.glob("cu[0-9][0-9]"), reverse=True)
        yield folder / "cuda_nvrtc"
    yield SYSTEM


def _wheels() -> tuple[Path, ...]:
    """The folders `nvidia` of all folders of packages: wheels may be spread over several, as by `PYTHONPATH`."""
    spec = find_spec("nvidia")
    return tuple(map(Path, spec.submodule_search_locations or ())) if spec is not None else ()


def _includes(root: Path) -> Iterator[Path]:
    """The wheels' folders of headers, the compiler's own first; the system's too where no wheel brings libcu++."""
    places = [] if root == SYSTEM else [root.parent, *(one for one in _wheels() if one != root.parent)]
    names = (root.name, *_INCLUDE_FOLDERS) if root.name == "cuda_nvrtc" else (root.name,)
    roots = [place / name for place in places for name in names] or [root]
    found = [folder for base in roots for folder in (base / "include", base / "include" / "cccl") if folder.is_dir()]
    yield from found
    if root != SYSTEM and not any((folder / _LIBCUXX_HEADER).is_file() for folder in found):
        yield from _includes(SYSTEM)
