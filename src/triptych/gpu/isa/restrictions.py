"""What modifiers of a row do not go together with: rows whose modifiers are no product of their groups say it here.

`ptxas` refuses the same combinations; `tests/data/forms` has its answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triptych.gpu.isa.table import Form


@dataclass(frozen=True, slots=True)
class Restriction:
    """A rule for forms that have one of some modifiers; `""` stands for a form whose opcode names no space."""

    of: frozenset[str]
    """The modifiers, or types, that the rule is for; empty: all forms."""
    apart: frozenset[str] = frozenset()
    """Modifiers that must not be there too."""
    spaces: frozenset[str] | None = None
    """The spaces that they are for; None: all."""
    types: frozenset[str] | None = None
    """The types that they are for; None: all."""
    lane_bytes: frozenset[int] | None = None
    """The bytes of a lane that they are for; None: any number."""
    layouts: tuple[str, str] | None = None
    """The layouts of the matrices A and B that they are for; None: all."""
    rule: Callable[[Form], str | None] | None = None
    """What is wrong with a form, where none of the above says it."""

    def broken_by(self, form: Form) -> str | None:
        """What is wrong with a form, None where it keeps the rule."""
        names = form.modifiers | {kind.name for kind in form.types.values()}
        mine = sorted(self.of & names)
        if self.of and not mine:
            return None
        what = f".{mine[0]}" if mine else "it"
        if clash := sorted(self.apart & names):
            return f"{what} cannot be combined with .{clash[0]}"
        if self.spaces is not None and form.get("space") not in self.spaces:
            known = " and ".join(f".{name}" if name else "generic addresses" for name in sorted(self.spaces))
            return f"{what} is for {known} alone"
        if self.types is not None and form.type.name not in self.types:
            return f"{what} is for {', '.join(f'.{name}' for name in sorted(self.types))} alone"
        if self.lane_bytes is not None and form.lane_bytes not in self.lane_bytes:
            return f"{what} is for accesses of {' or '.join(map(str, sorted(self.lane_bytes)))} bytes alone"
        if self.layouts is not None and (form.get("alayout"), form.get("blayout")) != self.layouts:
            return f"{what} is for .{'.'.join(self.layouts)} alone"
        return None if self.rule is None else self.rule(form)
