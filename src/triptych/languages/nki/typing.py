"""`nki.typing`: annotations of kernel arguments, and stand-ins for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.languages.nki.tracing.dtypes import nki_dtype
from triptych.languages.nki.tracing.indexing import sequence, whole_numbers


class tensor:  # the language's own name
    """An input, which the kernel only reads; `tensor[[250, 512], nl.float32]` is an array of zeros to call one with."""

    def __class_getitem__(cls, key: object) -> NDArray[Any] | type[tensor]:
        """`[shape, dtype]` gives an array; `[128, 512]`, an annotation, the type."""
        parts = sequence(key)
        if len(parts) == 2 and not isinstance(parts[0], int):
            shape: object = parts[0]
            return np.zeros(whole_numbers(shape, "nki.typing.tensor: the shape"), nki_dtype(parts[1]))
        return cls


class mutable_tensor:  # the language's own name
    """An argument that the kernel may write, and returns."""
