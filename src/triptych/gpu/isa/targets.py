"""Which targets have what: a need is what a form of an instruction asks of its module's `.target` (PTX manual, 11.1.2).

`sm_90` is met by it and all that came later, `sm_100f` by what its family has in common (`sm_100f`, `sm_103f` and the
architecture-specific `sm_100a`, `sm_103a`), `sm_100a` by itself alone; of several, one is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

_TARGET = re.compile(r"sm_(\d+)([af]?)")
_FAMILIES: Mapping[int, int] = {103: 100, 107: 100, 121: 120}
"""The first member of the family, where it is another one."""


def _parts(target: str) -> tuple[int, str]:
    found = _TARGET.fullmatch(target)
    return (0, "") if found is None else (int(found[1]), found[2])


def _is_enough(target: str, need: str) -> bool:
    (given, suffix), (wanted, kind) = _parts(target), _parts(need)
    if kind == "a":
        return target == need
    if kind == "f":
        related = _FAMILIES.get(given, given) == _FAMILIES.get(wanted, wanted)
        return bool(suffix) and related and given >= wanted
    return given >= wanted


def meets(target: str, need: str) -> bool:
    """Whether a module's target has what a form needs."""
    return any(_is_enough(target, one) for one in need.split())


def describe(need: str) -> str:
    """A need in words: `sm_90 or higher`, `sm_100f or sm_120f`."""
    *others, last = need.split()
    if not others:
        return last if _parts(last)[1] else f"{last} or higher"
    return f"{', '.join(others)} or {last}"


def needs_of(names: Iterable[str], needs: Mapping[str, str]) -> Iterator[str]:
    """What a form needs, by the names of its modifiers, its types, and its operands that may be missing.

    Of `needs` the names say for which forms: `""` for all, `v4.b64` for those that have both.
    """
    there = {"", *names}
    return (need for name, need in needs.items() if there.issuperset(name.split(".")))
