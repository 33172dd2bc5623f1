"""One helper as a module of its own: the short ways, and a second function for all the rest."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.isa.spaces import LOCAL
from triptych.gpu.lower.memory.access import HelperAccess
from triptych.gpu.lower.memory.general import build_general
from triptych.gpu.lower.memory.inline import build_fallbacks
from triptych.gpu.lower.memory.local import build_local
from triptych.gpu.lower.memory.short import SHORT_WAYS, build_short_ways


def build_helper(access: HelperAccess) -> ir.Module:
    """The helper's module; where the space has short ways, all the rest is a second function."""
    module = ir.Module(name=access.name)
    has_short_ways = not access.is_atomic and (access.space is LOCAL or access.space in SHORT_WAYS)
    name = f"{access.name}.general" if has_short_ways else access.name
    general = ir.Function(module, access.function_type, name)
    if not has_short_ways:
        build_general(access, general)
    else:
        general.linkage = "internal"
        general.attributes.add("noinline")
        function = ir.Function(module, access.function_type, access.name)
        if access.space is LOCAL:
            build_local(access, function, general)
        else:
            build_general(access, general)
            build_short_ways(access, function, general)
    build_fallbacks(module, access)
    return module
