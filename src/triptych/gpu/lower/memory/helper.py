"""One helper as a module of its own: the short ways, and a second function for all the rest."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.lower.memory.access import Access
from triptych.gpu.lower.memory.general import General
from triptych.gpu.lower.memory.inline import build_fallbacks
from triptych.gpu.lower.memory.short import build_short_ways


class Helper:
    """Builds one helper as a module of its own: the short ways, and a second function for all the rest."""

    def __init__(self, access: Access) -> None:
        """Builds it."""
        self.module = ir.Module(name=access.name)
        has_short_ways = not access.is_atomic and access.space in ("global", "shared")
        name = f"{access.name}.general" if has_short_ways else access.name
        general = ir.Function(self.module, access.function_type, name)
        General(access, general)
        if has_short_ways:
            general.linkage = "internal"
            general.attributes.add("noinline")
            build_short_ways(access, ir.Function(self.module, access.function_type, access.name), general)
        build_fallbacks(self.module, access)
