"""What a run did, node by node: the plan's nodes as they were executed, with the records of their launches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from triptych.core.launches import LaunchRecord
from triptych.core.plan import Choose, Launch, Node, Plan
from triptych.judge.claims import ForgedReply
from triptych.judge.execution.request import Ran


@dataclass(frozen=True, slots=True)
class Step:
    """A node that was executed."""

    place: int
    """The place of the plan's node that it is, or is inside of."""
    node: Node
    record: LaunchRecord | None
    """Of a launch."""


def steps_of(plan: Plan, ran: Ran) -> tuple[Step, ...]:
    """The nodes that a watched run executed, in order: of alternatives those of the one that was chosen.

    Raises:
        ForgedReply: where the run tells of other launches or choices than the plan has.
    """
    choices, records = list(ran.choices), list(ran.records)
    found = [Step(place, node, _record(node, records)) for place, node in _backwards(plan, choices, None)]
    if choices or records:
        raise ForgedReply("the run tells of more launches or choices than the plan has")
    return tuple(reversed(found))


def _backwards(plan: Plan, choices: list[str], around: int | None) -> Iterator[tuple[int, Node]]:
    """The nodes from the last to the first, so that a choice comes before those inside of it."""
    for place, node in reversed(list(enumerate(plan.nodes))):
        top = place if around is None else around
        if not isinstance(node, Choose):
            yield top, node
            continue
        label = choices.pop() if choices else ""
        if label not in node.labels:
            raise ForgedReply(f"no alternative is called {label!r}")
        yield from _backwards(node.alternatives[node.labels.index(label)], choices, top)


def _record(node: Node, records: list[LaunchRecord]) -> LaunchRecord | None:
    if not isinstance(node, Launch):
        return None
    if not records:
        raise ForgedReply("the run tells of fewer launches than the plan has")
    return records.pop()
