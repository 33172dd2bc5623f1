"""What is the same of all instructions of a row, and their attributes, of which equal ones are one object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from triptych.neuron.isa import ROWS
from triptych.neuron.isa.row import OperandRule, Row
from triptych.neuron.isa.trace import AttributeValue, SharedAttributes, kind_of

_MOST_ATTRIBUTES = 1 << 12
"""Of a row, that are kept."""


@dataclass(frozen=True, slots=True)
class Form:
    """A row, as the tracer sees it."""

    row: Row
    defaults: SharedAttributes
    states: tuple[OperandRule, ...]
    """The operands that stand for registers of the engine."""
    known: dict[object, SharedAttributes]
    """The attributes of instructions so far, by what the language gave."""

    @classmethod
    def of(cls, operation: str) -> Form:
        """That of the row of this name."""
        row = ROWS[operation]
        defaults = SharedAttributes({name: rule.default for name, rule in row.attributes.items()})
        return cls(row, defaults, tuple(rule for rule in row.operands if rule.state or rule.name == "registers"), {})

    def filled(self, given: Mapping[str, AttributeValue] | None) -> Mapping[str, AttributeValue]:
        """All attributes of an instruction: those that are given, and the others by default."""
        if not given:
            return self.defaults
        if type(given) is SharedAttributes:
            return given
        values = given.values()
        key = (*given, *values, *map(kind_of, values))
        found = self.known.get(key)
        if found is None:
            found = SharedAttributes({**self.defaults, **given})
            if len(self.known) >= _MOST_ATTRIBUTES:
                return dict(found)
            self.known[key] = found
        return found


form_of = cache(Form.of)


@lru_cache(1 << 12, typed=True)
def shared_attributes(
    operation: str, **given: str | bool | int | tuple[int, ...] | None
) -> Mapping[str, AttributeValue]:
    """As `attributes_of`, without a look at each of them: none is a float, of which 0.0 and -0.0 are equal."""
    return attributes_of(operation, given)


def attributes_of(operation: str, given: Mapping[str, AttributeValue]) -> Mapping[str, AttributeValue]:
    """All attributes of an instruction of the row: `Tracer.emit` takes them as they are."""
    return form_of(operation).filled(given)
