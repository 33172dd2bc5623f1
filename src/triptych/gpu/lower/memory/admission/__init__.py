"""What comes before an access moves data: bounds, the host's addresses, counters. A function a space, for any request.

`admit(context, site, mask, places, size, write) -> i64` takes a warp's request: the lanes of `mask` reach for `size`
bytes each. `places` points to 32 addresses, which it replaces by those of the host. It counts the request, and records
the first fault of a lane that may not have what it reaches for. The result says which lanes may (its lower 32 bits),
and how the places lie (a `Pattern` above them). Beside it stands what serves requests in two halves (`halves.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from triptych.gpu.isa.spaces import CLUSTER, GENERIC, GENERIC_IN_CLUSTERS, GLOBAL, LOCAL, SHARED, Space
from triptych.gpu.lower.memory.admission import quarters
from triptych.gpu.lower.memory.admission.cluster import AdmitCluster
from triptych.gpu.lower.memory.admission.generic import AdmitGeneric
from triptych.gpu.lower.memory.admission.quarters import AdmitQuarters
from triptych.gpu.lower.memory.admission.request import ADMIT_TYPE, Admission, Pattern, Request, admit_name
from triptych.gpu.lower.memory.admission.storages import AdmitGlobal
from triptych.gpu.lower.memory.admission.windowed import AdmitLocal, AdmitShared
from triptych.gpu.lower.memory.halves import HALVES, build_halves, halves_name

__all__ = [
    "ADMISSIONS",
    "ADMIT_TYPE",
    "BY_SIZE",
    "Pattern",
    "admission_name",
    "admit_name",
    "admit_symbols",
    "build_admission",
]

ADMISSIONS: Mapping[Space, type[Admission]] = {
    GLOBAL: AdmitGlobal, SHARED: AdmitShared, CLUSTER: AdmitCluster, LOCAL: AdmitLocal, GENERIC: AdmitGeneric,
    GENERIC_IN_CLUSTERS: AdmitGeneric,
}  # fmt: skip
"""How each space that has helpers of its own admits requests."""


BY_SIZE: Mapping[tuple[Space, int], type[Admission]] = {(SHARED, quarters.BYTES): AdmitQuarters}
"""How requests of so many bytes a lane are admitted, where the space's own way would be slow for most of them."""


def admission_name(space: Space, size: int) -> str:
    """The symbol of the function for requests of `size` bytes a lane."""
    return f"{admit_name(space)}.{size}" if (space, size) in BY_SIZE else admit_name(space)


def admit_symbols(space: Space) -> tuple[str, ...]:
    """The symbols of a space's module."""
    return (admit_name(space), halves_name(space)) if space in HALVES else (admit_name(space),)


def build_admission(space: Space, size: int | None = None) -> ir.Module:
    """The module with a space's functions, or with that for a size in `BY_SIZE`."""
    name, admission = admit_name(space), ADMISSIONS[space]
    if size is not None:
        name, admission = admission_name(space, size), BY_SIZE[space, size]
    module = ir.Module(name=name)
    admission(Request(ir.Function(module, ADMIT_TYPE, name), space)).build()
    if size is None and space in HALVES:
        build_halves(module, space)
    return module
