"""What is read, called or laid out as Triton does without documenting it; each entry says in which versions it is so.

What Triton calls of ours has the form that Triton gives it, in the module that it belongs to: the driver (`driver`,
`backend`), the hook on its stages (`stages`), a compiled kernel's attributes (`registers`), the autotuner's state
(`autotuning`), the arguments' specialiser (`specialisation`). They say the versions too.

Triton is not typed, so its objects come in as `Any` here and leave as the protocols below.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import triton

from triptych.core.gpu_facts import WARP_SIZE
from triptych.core.source import SourceLocation
from triptych.languages.calling import calling_location, frames
from triptych.languages.triton.version import installed_version

_T = TypeVar("_T")
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
(3.6 to 3.9) is read from this module whenever a kernel's binder is made, once for each kernel and device.
`JITCallable.cache_key` (3.6 to 3.9) is a property that what was compiled of a function is kept by."""

compiler: Any = _compiler
"""`triton.compiler.compiler`. `get_cache_key(source, backend, options, env_vars) -> str` (3.6 to 3.9) is read from this
module for each compilation, `get_sass(binary) -> str` for `asm["sass"]` (3.6 to 3.9). `CompiledKernel` has what
`load_binary` gave as `.function`, `.n_regs` and `.n_spills`, all set when the kernel is first launched (3.6 to 3.9):
by `._init_handles()`, which makes the launcher, `._run`, too, and is called again while there is no `.module`."""

autotuner: Any = import_module("triton.runtime.autotuner")
"""`triton.runtime.autotuner`. `Autotuner.run(*args, **kwargs)`, `.cache` (configurations by key) and `.do_bench` (a
`cached_property` of the driver's benchmarker) are the same from 3.6 to 3.9; so are `.configs`, of which a single one is
launched without a benchmark, its hook before it, `.arg_names`, `.nargs` (the arguments by name, while it runs),
`.prune_configs(keywords)` and `.pre_hook(named, reset_only=…)`."""

cuda_driver: Any = _cuda_driver.CudaDriver
"""Triton's own driver. `is_active()` (3.6 to 3.9) asks torch whether there is a GPU."""

libraries: Any = cast(Any, import_module("triton._C.libtriton")).nvidia
"""Triton's handles on NVIDIA's libraries: `cublas.CublasLt` (3.6 to 3.9)."""

testing: Any = import_module("triton.testing")
"""`triton.testing`: `do_bench`, `do_bench_cudagraph` and `Mark` (public)."""

PROTON = "triton._C.libproton"
"""What Proton's Python side calls: the functions of its module `proton` (3.6 to 3.9), loaded when it is imported."""

runtime_knobs: Any = _triton.knobs.runtime
"""`triton.knobs.runtime`. `add_stages_inspection_hook` (3.6 to 3.9; a cache key is asked of it from 3.7 on)."""

HOOK_HAS_CACHE_KEY = installed_version() >= (3, 7)
"""Whether the stage hook's key reaches Triton's cache key by itself. In 3.6 it does not."""

AUTOTUNER_STATE = ("cache", "do_bench", "cache_results")
"""Attributes of an `Autotuner` in which it remembers what it found out on a device (3.6 to 3.9)."""
AUTOTUNER_TIMINGS = "configs_timings"
"""The attribute of an `Autotuner` that has the times of the last configurations tried, in ms: a new dict each time."""

CONFIGURATION_ERRORS: tuple[type[Exception], ...] = (
    import_module("triton.runtime.errors").OutOfResources,
    import_module("triton.runtime.errors").PTXASError,
    import_module("triton.compiler.errors").CompileTimeAssertionFailure,
)
"""What an autotuner takes for a configuration that cannot be had (3.6 to 3.9)."""

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
    tensordesc_meta: Sequence[Mapping[str, Any]]
    """Of each descriptor among the parameters: how it is passed as a tensor map; empty where the target has none."""


class GpuTarget(Protocol):
    """`triton.backends.compiler.GPUTarget` (public)."""

    backend: str
    arch: int
    warp_size: int


class Source(Protocol):
    """`ASTSource` or `IRSource`: the signature maps each parameter to a type's name, or to a tuple of them."""

    signature: Mapping[str, Any]


class LaunchCall(NamedTuple):
    """What Triton calls a launcher with (3.6 to 3.9)."""

    grid: tuple[object, object, object]
    """As the author gave it: whole numbers, it is hoped."""
    function: Any
    """What `load_binary` gave."""
    launch_metadata: object
    enter_hook: Callable[[object], object] | None
    """Called with `launch_metadata` before the launch; `exit_hook` after it."""
    exit_hook: Callable[[object], object] | None
    arguments: tuple[object, ...]
    """The kernel's own, compile-time constants among them."""

    @classmethod
    def of(cls, values: tuple[Any, ...]) -> LaunchCall:
        """From the positional arguments of the call; the stream and the packed metadata say nothing here."""
        x, y, z, _stream, function, _packed, launch_metadata, enter_hook, exit_hook, *arguments = values
        return cls((x, y, z), function, launch_metadata, enter_hook, exit_hook, tuple(arguments))


def proton_library() -> Any:  # noqa: ANN401  # a module without types
    """The module of Proton's functions."""
    return cast(Any, import_module(PROTON)).proton


def with_scratch(arguments: Sequence[_T], global_scratch: _T, profile_scratch: _T) -> tuple[_T, ...]:
    """A kernel's parameters: behind the author's, Triton's CUDA backend puts pointers to two scratches (3.6 to 3.9)."""
    return (*arguments, global_scratch, profile_scratch)


def descriptor_parts(name: str, kind: str, descriptor: Any) -> Iterator[tuple[str, str, object]]:  # noqa: ANN401
    """Names, types and values of the parameters into which Triton (3.6 to 3.9) rewrites a `TensorDescriptor`.

    It does so where the target has no tensor maps. They are the pointer, shape and strides, then the flags, then shape
    and strides again (of the descriptor as a Python-side value). The flag `round_f32_to_tf32` is there from 3.7 on, as
    it is in the descriptor itself.

    Args:
        name: the descriptor's own parameter.
        kind: its type, `tensordesc<fp16[64, 64]>`.
        descriptor: the value.
    """
    element = kind.partition("<")[2].partition("[")[0]
    shape = [(f"{name}.shape[{axis}]", extent) for axis, extent in enumerate(descriptor.shape)]
    strides = [(f"{name}.strides[{axis}]", step) for axis, step in enumerate(descriptor.strides)]
    yield f"{name}.base", f"*{element}", descriptor.base
    for part, number in (*shape, *strides):
        yield part, "i64", number
    yield f"{name}.padding", "i1", descriptor.padding == "nan"
    if hasattr(descriptor, "round_f32_to_tf32"):
        yield f"{name}.round_f32_to_tf32", "i1", descriptor.round_f32_to_tf32
    for part, number in shape:
        yield part, "i32", number
    for part, number in strides:
        yield part, "i64", number


def tensor_map_parts(
    name: str,
    kind: str,
    descriptor: Any,  # noqa: ANN401
    said: Mapping[str, Any],
) -> Iterator[tuple[str, str, object]]:
    """Names, types and values of the parameters of a `TensorDescriptor` where the target has tensor maps (3.6 to 3.9).

    They are the map, of type `kind`, then shape and strides. `said` is the kernel's `tensordesc_meta` of it.
    """
    yield name, kind, (descriptor, said)
    for axis, extent in enumerate(descriptor.shape):
        yield f"{name}.shape[{axis}]", "i32", extent
    for axis, step in enumerate(descriptor.strides):
        yield f"{name}.strides[{axis}]", "i64", step


def reinterpreted(value: object) -> object | None:
    """What a `triton.runtime.jit.TensorWrapper` (3.6 to 3.9) wraps; None for any other value."""
    return cast(Any, value).base if isinstance(value, _jit.TensorWrapper) else None


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


def interprets() -> bool:
    """Whether kernels go to Triton's own interpreter (`TRITON_INTERPRET`, public)."""
    return bool(runtime_knobs.interpret)


@contextmanager
def allocator(allocate: Callable[[int, int, object], object]) -> Generator[None]:
    """In the block, `global_scratch` comes from `allocate(bytes, alignment, stream)`; then from the user's again.

    What `triton.set_allocator` sets is a context variable (`_allocation._allocator`, 3.6 to 3.9).
    """
    token = _allocation._allocator.set(allocate)
    try:
        yield
    finally:
        _allocation._allocator.reset(token)


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
    """The innermost line of the user's own code on the stack, neither Triton's nor torch's: the launch."""
    torch = sys.modules.get("torch")
    return calling_location(*_FOREIGN, *(() if torch is None else torch.__path__))


_shown: dict[str | tuple[str, type[Warning], int], int] = {}
"""The warnings that were shown: Python's own way of showing each once."""


def warn_at_launch(message: str) -> None:
    """Warns at the user's line that launches."""
    where = launching_line()
    file, line = ("<unknown>", 0) if where is None else (where.file, where.line)
    warnings.warn_explicit(message, RuntimeWarning, file, line, registry=_shown)
