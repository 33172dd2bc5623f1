"""`import neuronxcc.nki`: Beta 1, which indexes by index tiles and returns tiles."""

from __future__ import annotations

from typing import Any, NoReturn

from triptych.languages.nki import compiler, isa, language, typing
from triptych.languages.nki.launching.jit import baremetal_beta1, jit_beta1, trace_beta1
from triptych.languages.nki.launching.kernel import Kernel
from triptych.languages.nki.launching.measuring import benchmark_beta1
from triptych.languages.nki.names import missing_name
from triptych.languages.nki.tracing.tensors import NkiTensor

__all__ = [
    "baremetal",
    "benchmark",
    "compiler",
    "isa",
    "jit",
    "language",
    "profile",
    "simulate_kernel",
    "tensor",
    "trace",
    "typing",
]

baremetal = baremetal_beta1
benchmark = benchmark_beta1
profile = benchmark_beta1
tensor = NkiTensor
jit = jit_beta1
trace = trace_beta1


def simulate_kernel(kernel: Kernel, *args: object, **kwargs: object) -> Any:  # noqa: ANN401  # what the kernel returns
    """Call the kernel: every call is simulated."""
    return kernel(*args, **kwargs)


def __getattr__(name: str) -> NoReturn:
    """A name that the module does not have, or that is not implemented."""
    missing_name("neuronxcc.nki", name, globals())
