"""`import neuronxcc.nki`: Beta 1, which indexes by index tiles and returns tiles."""

from __future__ import annotations

from typing import Any, NoReturn

from triptych.languages.nki import isa, language, typing
from triptych.languages.nki.jit import jit_beta1
from triptych.languages.nki.kernel import Kernel
from triptych.languages.nki.names import missing_name

__all__ = ["isa", "jit", "language", "simulate_kernel", "trace", "typing"]

jit = jit_beta1
trace = jit_beta1


def simulate_kernel(kernel: Kernel, *args: object, **kwargs: object) -> Any:  # noqa: ANN401  # what the kernel returns
    """Call the kernel: every call is simulated."""
    return kernel(*args, **kwargs)


def __getattr__(name: str) -> NoReturn:
    """A name that the module does not have, or that is not implemented."""
    missing_name("neuronxcc.nki", name, globals())
