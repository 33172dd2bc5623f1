"""`nki.language`: looking at tiles while a kernel runs."""

from __future__ import annotations

from triptych.languages.nki.language_functions.renaming import also_called
from triptych.languages.nki.tracing.indexing import refuse
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import current


@also_called(prefix="print_prefix", x="tensor")
def device_print(print_prefix: str, tensor: NkiTensor, *, mask: object = None) -> None:
    """Prints the prefix and the elements of a tile or a tensor, when the launch has ended."""
    tracer = current("nl.device_print")
    if not isinstance(print_prefix, str) or not isinstance(tensor, NkiTensor):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse(f"nl.device_print({print_prefix!r}, {tensor!r}): expected a string and a tensor")
    tracer.emit("device_print", {"tensor": tensor}, {"prefix": print_prefix}, mask=mask)
