"""Every contact with what Triton does not document, in one place; each entry says in which versions it is there.

Triton is not typed, so its objects come in as `Any` here and leave as the protocols below.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, cast

import triton

from triptych.core.gpu_facts import WARP_SIZE
from triptych.core.source import SourceLocation
from triptych.languages.calling import calling_location, frames

_triton: Any = cast(Any, triton)
_jit: Any = import_module("triton.runtime.jit")
_driver: Any = import_module("triton.runtime.driver")
_allocation: Any = import_module("triton.runtime._allocation")
_compiler: Any = import_module("triton.compiler.compiler")
_targets: Any = import_module("triton.backends.compiler")
_cuda_compiler: Any = import_module("triton.backends.nvidia.compiler")
_cuda_driver: Any = import_module("triton.backends.nvidia.driver")

jit: Any = _jit
"""`triton.runtime.jit`. `native_specialize_impl(backend, argument, is_const, specialise, align) -> (type, attributes)`
(3.6 to 3.9) is read from this module whenever a kernel's binder is made, once for each kernel and device."""

compiler: Any = _compiler
"""`triton.compiler.compiler`. `get_cache_key(source, backend, options, env_vars) -> str` (3.6 to 3.9) is read from this
module for each compilation. `CompiledKernel` has what `load_binary` gave as `.function`, `.n_regs` and `.n_spills`, all
set when the kernel is first launched (3.6 to 3.9)."""

autotuner: Any = import_module("triton.runtime.autotuner")
"""`triton.runtime.autotuner`. `Autotuner.run(*args, **kwargs)`, `.cache` (configurations by key) and `.do_bench` (a
`cached_property` of the driver's benchmarker) are the same from 3.6 to 3.9."""

testing: Any = import_module("triton.testing")
"""`triton.testing`: `do_bench` and `do_bench_cudagraph` (public)."""

runtime_knobs: Any = _triton.knobs.runtime
"""`triton.knobs.runtime`. `add_stages_inspection_hook` (3.6 to 3.9; a cache key is asked of it from 3.7 on)."""

VERSION: tuple[int, int] = cast("tuple[int, int]", tuple(int(part) for part in _triton.__version__.split(".")[:2]))
HOOK_HAS_CACHE_KEY = VERSION >= (3, 7)
"""Whether the stage hook's key reaches Triton's cache key by itself. In 3.6 it does not."""

_FP_FUSION = "TRITON_DEFAULT_FP_FUSION"


class Metadata(Protocol):
    """What a compiled kernel says of itself (a named tuple made from the cache's JSON; the same from 3.6 to 3.9)."""

    name: str
    num_warps: int
    """Warps of a block, those of warp-specialised partitions included."""
    num_ctas: int
    """Blocks of a cluster."""
    shared: int
    """Bytes of dynamic shared memory."""
    global_scratch_size: int
    """Bytes for each block."""
    global_scratch_align: int
    profile_scratch_size: int
    launch_cooperative_grid: bool
    target: GpuTarget


class GpuTarget(Protocol):
    """`triton.backends.compiler.GPUTarget` (public)."""

    backend: str
    arch: int
    warp_size: int


class Source(Protocol):
    """`ASTSource` or `IRSource`: the signature maps each parameter to a type's name, or to a tuple of them."""

    signature: Mapping[str, Any]


def make_target(architecture: int) -> GpuTarget:
    """`GPUTarget("cuda", 80, 32)` for 80: user code branches on the name `cuda`."""
    return _targets.GPUTarget("cuda", architecture, WARP_SIZE)


def cpp_type(name: str) -> str:
    """The C++ type that Triton's CUDA stubs use for a Triton type (3.6 to 3.9)."""
    return _cuda_driver.ty_to_cpp(name)


def assembler(architecture: int) -> str:
    """The path of the `ptxas` that Triton would use for 80 or 90 (`get_ptxas`, 3.6 to 3.9)."""
    return _cuda_compiler.get_ptxas(architecture).path


def set_driver(driver: object) -> None:
    """Makes `driver` the one that kernels launch with (`triton.runtime.driver.set_active`, public)."""
    _triton.runtime.driver.set_active(driver)


def chosen_driver() -> object:
    """The driver chosen so far, `None` while none was needed (`DriverConfig._active`, 3.6 to 3.9).

    The public property `active` is not asked: it would look for a real GPU and raise where there is none.
    """
    return _driver.driver._active


def global_scratch(size: int, alignment: int) -> object:
    """A buffer from the allocator that the user gave to `triton.set_allocator`.

    Raises:
        RuntimeError: Triton's own, where the user set none, as on a GPU.
    """
    return _allocation._allocator.get()(size, alignment, 0)


def fp_fusion_is_set() -> bool:
    """Whether the user chose floating-point contraction (by Triton's own environment variable or its knob)."""
    return _FP_FUSION in os.environ


def set_fp_fusion() -> None:
    """Says aloud what the compiler does by default: contraction on (3.6 to 3.9; 3.9 warns where nobody says it)."""
    _triton.knobs.language.default_fp_fusion = True


def unset_fp_fusion() -> None:
    """Takes `set_fp_fusion` back."""
    del _triton.knobs.language.default_fp_fusion
    os.environ.pop(_FP_FUSION, None)


def bound_argument(value: object) -> tuple[str, str] | None:
    """The kernel's and the parameter's name while Triton binds arguments; `None` anywhere else.

    Triton specialises arguments without their names: the binder (`dynamic_func`, generated by
    `create_function_from_signature`, 3.6 to 3.9) has them as its local variables, and its caller is `JITFunction.run`.
    """
    for frame in frames():
        if frame.f_code.co_name == "dynamic_func":
            names = [name for name, bound in frame.f_locals.items() if _holds(bound, value)]
            kernel = frame.f_back.f_locals.get("self") if frame.f_back else None
            return getattr(kernel, "__name__", "kernel"), names[0] if names else "?"
    return None


def _holds(bound: object, value: object) -> bool:
    return bound is value or (isinstance(bound, tuple) and any(_holds(item, value) for item in cast(Any, bound)))


# Triton's own code, and code without a file, such as the binders that Triton generates.
_FOREIGN = (os.path.dirname(triton.__file__), "<")


def launching_line() -> SourceLocation | None:
    """The innermost line of the user's own code on the stack: the launch."""
    return calling_location(*_FOREIGN)
