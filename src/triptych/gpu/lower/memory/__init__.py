"""Memory accesses as functions that every kernel shares: bounds, address translation, counters, the access itself.

A helper acts for a whole warp: `(context, site, mask, addresses, values…)`. It takes the short way where the active
lanes touch neighbouring elements or one element, and goes lane by lane otherwise. An access that faults is recorded,
left out, and stops the launch.
"""

from triptych.gpu.lower.memory.access import GENERIC_SITES, Access, atomic_access, helper_space, needed_by
from triptych.gpu.lower.memory.copies import build_copy, copy_name, needed_by_copy
from triptych.gpu.lower.memory.counts import Phases, phases_of
from triptych.gpu.lower.memory.helper import Helper
from triptych.gpu.lower.memory.inline import emit_inline, fallback_name, ways_of

__all__ = [
    "GENERIC_SITES",
    "Access",
    "Helper",
    "Phases",
    "atomic_access",
    "build_copy",
    "copy_name",
    "emit_inline",
    "fallback_name",
    "helper_space",
    "needed_by",
    "needed_by_copy",
    "phases_of",
    "ways_of",
]
