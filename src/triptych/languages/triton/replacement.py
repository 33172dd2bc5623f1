"""An attribute of somebody else's that holds something of ours for a while."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ABSENT = object()
"""In place of an original where there was none."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """What was put in place of an attribute, and how it is put back."""

    owner: Any
    name: str
    original: Any
    ours: Any

    @classmethod
    def apply(cls, owner: Any, name: str, make: Callable[[Any], Any]) -> Replacement:  # noqa: ANN401
        """Puts `make(original)` in place."""
        original = _held(owner, name)
        ours = make(original)
        setattr(owner, name, ours)
        return cls(owner, name, original, ours)

    def undo(self) -> None:
        """Puts the original back, unless somebody else has replaced ours since."""
        if _held(self.owner, self.name) is not self.ours:
            return
        if self.original is ABSENT:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.original)


def _held(owner: Any, name: str) -> Any:  # noqa: ANN401
    """The attribute as its owner itself holds it: a class's static method as such, and nothing that it inherits."""
    return vars(owner).get(name, ABSENT) if isinstance(owner, type) else getattr(owner, name, ABSENT)
