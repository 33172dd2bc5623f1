"""What watched kernels call: a unit for all of them, and one for those whose threads copy in bulk."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.lower.watching.accesses import ACCESS, GENERIC_ACCESS, RANGE, RUN, build_accesses
from triptych.gpu.lower.watching.bulk import LAND, TAKE, build_bulk_watching
from triptych.gpu.lower.watching.completion import build_completion
from triptych.gpu.lower.watching.copies import (
    AWAIT,
    BULK_GROUPS,
    COMMIT,
    COPY,
    GROUPS,
    TRACK,
    build_copies,
)
from triptych.gpu.lower.watching.layout import watch
from triptych.gpu.lower.watching.mbarriers import OBSERVE, build_mbarriers
from triptych.gpu.lower.watching.products import AWAIT_PRODUCTS, COMMIT_PRODUCTS, MATRIX, build_products
from triptych.gpu.lower.watching.reads import DROP, build_reads
from triptych.native.engine import Unit

_SYMBOLS = (
    ACCESS, GENERIC_ACCESS, RUN, RANGE, DROP, COPY, TRACK, OBSERVE, MATRIX, COMMIT_PRODUCTS, AWAIT_PRODUCTS,
    *(f"{function}.{kind}" for function in (COMMIT, AWAIT) for kind in (GROUPS, BULK_GROUPS)),
)  # fmt: skip


def build_watching() -> ir.Module:
    """The module with all of it."""
    module = ir.Module(name=watch("all"))
    for build in (build_completion, build_reads, build_accesses, build_copies, build_mbarriers, build_products):
        build(module)
    return module


WATCHING = Unit("watching", _SYMBOLS, build_watching, level=2)
BULK_WATCHING = Unit("bulk_watching", (LAND, TAKE), build_bulk_watching, level=2)
"""Its code finds places in clusters."""
