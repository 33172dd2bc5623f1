"""What a random kernel is made of: statements that each stand on their own, so that any of them can be left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Statement:
    """Lines of PTX, and bodies of further statements between them; a line is an instruction or a directive.

    A statement reads registers that always hold something, and writes what others may find changed: leaving it out,
    or a statement of its bodies, leaves a valid kernel.
    """

    parts: tuple[str | Body, ...]

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies, in order."""
        return tuple(part for part in self.parts if isinstance(part, tuple))

    def with_bodies(self, bodies: tuple[Body, ...]) -> Statement:
        """The same around other bodies."""
        given = iter(bodies)
        return Statement(tuple(next(given) if isinstance(part, tuple) else part for part in self.parts))

    def lines(self) -> Iterator[str]:
        """All lines, those of the bodies in their places."""
        for part in self.parts:
            if isinstance(part, str):
                yield part
            else:
                yield from lines_of(part)


Body = tuple[Statement, ...]


def plain(*lines: str) -> Statement:
    """A statement without bodies."""
    return Statement(lines)


def lines_of(body: Body) -> Iterator[str]:
    """The lines of a body."""
    for statement in body:
        yield from statement.lines()


@dataclass(frozen=True, slots=True)
class Routine:
    """The kernel or a function: what surrounds its body is always there."""

    head: str
    """Up to and without the `{`."""
    declarations: str
    start: tuple[str, ...]
    body: Body
    end: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RandomKernel:
    """A module with the kernel `k`, and the launch that it is made for."""

    seed: int
    variables: str
    routines: tuple[Routine, ...]
    """Functions, each before those that call it; the kernel last."""
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0

    def with_bodies(self, bodies: tuple[Body, ...]) -> RandomKernel:
        """The same with other bodies, one for each routine."""
        routines = zip(self.routines, bodies, strict=True)
        return replace(self, routines=tuple(replace(routine, body=body) for routine, body in routines))
