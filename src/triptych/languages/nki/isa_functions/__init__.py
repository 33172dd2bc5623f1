"""`nki.isa`, a file an engine: the author's function of each instruction.

`nki.isa` has what `PARTS` define of the names in `listing.py`; `function.py` says how a function is written.
"""

from triptych.languages.nki.isa_functions import (
    cores,
    dma,
    enums,
    function,
    gpsimd,
    gpsimd_gather,
    random,
    registers,
    scalar,
    tensor,
    vector,
)
from triptych.languages.nki.tracing import registers as virtual_registers

PARTS = (
    cores,
    dma,
    enums,
    function,
    gpsimd,
    gpsimd_gather,
    random,
    registers,
    scalar,
    tensor,
    vector,
    virtual_registers,
)
"""The files that define functions."""
