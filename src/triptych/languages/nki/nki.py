"""`import nki`: the current generation, which passes destinations."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from triptych.languages.nki import collectives, isa, language, typing
from triptych.languages.nki.launching.jit import baremetal, jit
from triptych.languages.nki.launching.kernel import Kernel
from triptych.languages.nki.launching.measuring import benchmark
from triptych.languages.nki.names import missing_name
from triptych.languages.nki.tracing import dtypes as dtype

__all__ = ["baremetal", "benchmark", "collectives", "dtype", "isa", "jit", "language", "profile", "simulate", "typing"]

profile = benchmark
__version__ = "0.6.0"
"""The release of NKI whose language this follows."""


def simulate(kernel: Kernel) -> Callable[..., object]:
    """The kernel itself: every call is simulated."""
    return kernel


def __getattr__(name: str) -> NoReturn:
    """A name that the module does not have, or that is not implemented."""
    missing_name("nki", name, globals())
