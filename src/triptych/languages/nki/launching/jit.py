"""The decorators `nki.jit` of both generations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import overload

from triptych.languages.nki.launching.kernel import Kernel
from triptych.languages.nki.tracing.indexing import refuse
from triptych.neuron.isa import hardware
from triptych.neuron.isa.trace import BETA1, CURRENT

Function = Callable[..., object]

_OPTIONS = frozenset({"mode", "show_compiler_tb", "debug_kernel", "platform_target", "experimental_flags"})
"""What kernels of NKI 0.2 and AWS's library name; `import nki` documents none, and takes any."""
_BETA1_OPTIONS = frozenset({"mode", "show_compiler_tb", "debug_kernel", "platform_target", "additional_compile_opt"})


@overload
def jit(function: Function) -> Kernel: ...
@overload
def jit(function: None = None, **options: object) -> Callable[[Function], Kernel]: ...
def jit(function: Function | None = None, **options: object) -> Kernel | Callable[[Function], Kernel]:
    """The decorator of `import nki`, with or without parentheses. Kernels may call each other.

    Raises:
        NkiError: for options that no release had.
    """
    return _decorate(function, CURRENT, options, _OPTIONS)


@overload
def jit_beta1(function: Function) -> Kernel: ...
@overload
def jit_beta1(function: None = None, **options: object) -> Callable[[Function], Kernel]: ...
def jit_beta1(function: Function | None = None, **options: object) -> Kernel | Callable[[Function], Kernel]:
    """The decorator of `import neuronxcc.nki`, with or without parentheses; every `mode=` runs the kernel here."""
    return _decorate(function, BETA1, options, _BETA1_OPTIONS)


def trace_beta1(function: Function) -> Kernel:
    """The decorator of Beta 1's older kernels, which write their results to arguments."""
    made = _decorate(function, BETA1, {}, frozenset())
    assert isinstance(made, Kernel)
    made.writes_arguments = True
    return made


def baremetal(function: Function | None = None, **options: object) -> Kernel | Callable[[Function], Kernel]:
    """The decorator of kernels that run without a framework, as all do here; its files are AWS's compiler's."""
    del options
    return _decorate(function, CURRENT, {}, frozenset())


def baremetal_beta1(function: Function | None = None, **options: object) -> Kernel | Callable[[Function], Kernel]:
    """The decorator of kernels that run without a framework, as all do here; its files are AWS's compiler's."""
    del options
    return _decorate(function, BETA1, {}, frozenset())


def _decorate(
    function: Function | None, generation: str, options: Mapping[str, object], known: frozenset[str]
) -> Kernel | Callable[[Function], Kernel]:
    unknown = sorted(set(options) - known)
    if unknown:
        raise refuse(f"nki.jit does not take {', '.join(unknown)}")

    def make(actual: Function) -> Kernel:
        plain = actual.function if isinstance(actual, Kernel) else actual
        made = Kernel(plain, generation)
        target = options.get("platform_target")
        if target is not None:
            made.target = hardware(str(target)).target
        return made

    return make if function is None else make(function)
