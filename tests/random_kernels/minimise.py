"""The smallest part of a failing kernel that still fails in the same way: delta debugging over its statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from grammar import Body, RandomKernel, Statement

Fails = Callable[[RandomKernel], bool]


def minimise(kernel: RandomKernel, fails: Fails, most: int = 400) -> RandomKernel:
    """Leaves statements out, in ever smaller runs, and opens those around others, while the kernel fails.

    `most`: how often `fails` may be asked.
    """
    left = most
    changed = True
    while changed and left > 0:
        changed = False
        for smaller in _smaller(kernel):
            left -= 1
            if left <= 0:
                break
            if fails(smaller):
                kernel, changed = smaller, True
                break
    return kernel


def _smaller(kernel: RandomKernel) -> Iterator[RandomKernel]:
    """Kernels with less in them, the ones with least first."""
    bodies = tuple(routine.body for routine in kernel.routines)
    for index in reversed(range(len(bodies))):
        for body in _smaller_bodies(bodies[index]):
            yield kernel.with_bodies((*bodies[:index], body, *bodies[index + 1 :]))


def _smaller_bodies(body: Body) -> Iterator[Body]:
    size = len(body)
    while size >= 1:
        for start in range(0, len(body), size):
            yield body[:start] + body[start + size :]
        size //= 2
    for index, statement in enumerate(body):
        before, after = body[:index], body[index + 1 :]
        for inner in statement.bodies:
            yield before + inner + after
        yield from ((*before, one, *after) for one in _smaller_statements(statement))


def _smaller_statements(statement: Statement) -> Iterator[Statement]:
    bodies = statement.bodies
    for index, inner in enumerate(bodies):
        for body in _smaller_bodies(inner):
            yield statement.with_bodies((*bodies[:index], body, *bodies[index + 1 :]))
