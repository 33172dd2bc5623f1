"""Memory accesses as functions that every kernel shares: bounds, address translation, counters, the access itself.

A helper acts for a whole warp: `(context, site, mask, addresses, values…)`. It takes the short way where the active
lanes touch neighbouring elements or one element, and goes lane by lane otherwise. An access that faults is recorded,
left out, and stops the launch.
"""

from triptych.gpu.lower.memory.access import HelperAccess, atomic_access, needed_by
from triptych.gpu.lower.memory.copies import build_copy, copy_name, needed_by_copy
from triptych.gpu.lower.memory.counts import Phases, phases_of
from triptych.gpu.lower.memory.helper import build_helper
from triptych.gpu.lower.memory.inline import emit_inline, fallback_name, ways_of
from triptych.gpu.lower.memory.matrices import LOAD_ROWS, build_load_matrix, load_matrix_name, load_matrix_result
from triptych.gpu.lower.memory.windows import WINDOWS

__all__ = [
    "LOAD_ROWS",
    "WINDOWS",
    "HelperAccess",
    "Phases",
    "atomic_access",
    "build_copy",
    "build_helper",
    "build_load_matrix",
    "copy_name",
    "emit_inline",
    "fallback_name",
    "load_matrix_name",
    "load_matrix_result",
    "needed_by",
    "needed_by_copy",
    "phases_of",
    "ways_of",
]
