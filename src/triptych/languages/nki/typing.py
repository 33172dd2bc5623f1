"""`nki.typing`: annotations of kernel arguments."""

from __future__ import annotations


class tensor:  # the language's own name
    """An input, which the kernel only reads."""


class mutable_tensor:  # the language's own name
    """An argument that the kernel may write, and returns."""
