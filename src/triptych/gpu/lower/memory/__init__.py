"""Memory accesses as functions that every kernel shares: bounds, address translation, counters, the access itself.

A helper acts for a whole warp: `(context, site, mask, addresses, values…)`. It takes a short way where a full warp
touches neighbouring elements or one element, and another where each half of it does (`halves.py`). Any other request is
admitted first (`admission/`: a function a space, whatever is accessed there), and then the helper moves the data. An
access that faults is recorded, left out, and stops the launch.
"""

from triptych.gpu.lower.memory.access import HelperAccess, atomic_access
from triptych.gpu.lower.memory.admission import BY_SIZE, admission_name, admit_name, admit_symbols, build_admission
from triptych.gpu.lower.memory.copies import BYTEWISE, build_copy, copy_name
from triptych.gpu.lower.memory.counts import Phases, phases_of
from triptych.gpu.lower.memory.helper import build_helper
from triptych.gpu.lower.memory.inline import emit_broadcast_call, emit_inline, fallback_name, ways_of
from triptych.gpu.lower.memory.matrices import (
    MATRIX_ROW_BYTES,
    build_load_matrix,
    build_store_matrix,
    load_matrix_name,
    load_matrix_result,
    store_matrix_name,
)
from triptych.gpu.lower.memory.windows import WINDOWS

__all__ = [
    "BYTEWISE",
    "BY_SIZE",
    "MATRIX_ROW_BYTES",
    "WINDOWS",
    "HelperAccess",
    "Phases",
    "admission_name",
    "admit_name",
    "admit_symbols",
    "atomic_access",
    "build_admission",
    "build_copy",
    "build_helper",
    "build_load_matrix",
    "build_store_matrix",
    "copy_name",
    "emit_broadcast_call",
    "emit_inline",
    "fallback_name",
    "load_matrix_name",
    "load_matrix_result",
    "phases_of",
    "store_matrix_name",
    "ways_of",
]
