"""The table of effects: what instructions do beside computing, and what that asks of whoever carries them out."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum

from triptych.core.memory_access import Access
from triptych.gpu.isa.spaces import GLOBAL, SHARED, Space


class Observation(Enum):
    """What the results of an instruction tell of what other threads write."""

    NOTHING = 0
    WEAK = 1
    """What they wrote some time: a compiler takes a load out of a loop that it need not see change."""
    STRONG = 2
    """What they wrote last."""


class Carrier(Enum):
    """Who carries an instruction out; executors have a case for each."""

    MEANING = 0
    """The row's meaning."""
    BLOCK_ARRIVAL = 1
    """The executor, in passing, at a barrier of the block."""
    CLUSTER_ARRIVAL = 2
    """The executor, in passing, at the barrier of the cluster."""
    HOST = 3
    """The host, for one lane after another."""
    MEETING = 4
    """The lanes that its mask names, which run it together: then there is nothing left to do."""
    BLOCK_END = 5
    """The executor, behind the other instructions of the block: it chooses what runs next, or waits there."""
    TRAP = 6
    """The executor, which stops the launch."""


@dataclass(frozen=True, eq=False, repr=False)
class Facts:
    """The columns of an effect."""

    accesses: tuple[tuple[Space | None, Access], ...] = ()
    """The accesses to memory that each execution makes: the space, None for the one that the opcode names, and what
    the access does there. A memory site follows from each, and the helpers that serve it."""
    lane_bytes: int = 0
    """Bytes that one lane moves; 0: its elements, or what an operand says (`size_operand`)."""
    unit_bytes: int = 0
    """Bytes of the words that it moves; 0: those of an element."""
    size_operand: bool = False
    """Whether the third source, a literal, says how many bytes a lane moves."""
    observes: Observation = Observation.NOTHING
    """Of a row that does not say otherwise."""
    orders: bool = False
    """Whether it orders, awaits or prepares accesses: there is nothing to do where each takes effect at once."""
    carrier: Carrier = Carrier.MEANING
    has_destination: bool = True
    """Whether the first operand is a destination, unless it is an address."""
    ends_block: bool = False
    """Whether it chooses what runs next: it is the last instruction of its basic block."""
    leaves: bool = False
    """Whether the thread ends here."""
    calls: bool = False
    """Whether it calls a function."""
    is_block_barrier: bool = False
    """Whether it arrives at a barrier of the launch's block."""
    waits: bool = False
    """Whether the threads of the launch's block, or of its cluster, wait for each other at it."""
    combines: bool = False
    """Whether its last operand is a predicate of which all threads at the barrier get the combination."""


class Effect(Facts, Enum):
    """What an instruction does beyond computing its destinations from its sources; the columns are those of `Facts`."""

    NONE = Facts()
    LOAD = Facts(accesses=((None, "load"),), observes=Observation.WEAK)
    LOAD_MATRIX = Facts(accesses=((SHARED, "load"),), lane_bytes=16, unit_bytes=4)
    """A load in which lanes give addresses for each other (`ldmatrix`)."""
    STORE = Facts(accesses=((None, "store"),), has_destination=False)
    ATOMIC = Facts(accesses=((None, "atomic"),), observes=Observation.STRONG)
    COPY = Facts(accesses=((GLOBAL, "load"), (SHARED, "store")), unit_bytes=4, size_operand=True, has_destination=False)
    """From global to shared memory."""
    ORDER = Facts(orders=True, has_destination=False)
    WARP = Facts()
    """Lanes of the warp exchange values."""
    WARP_BARRIER = Facts(carrier=Carrier.MEETING, has_destination=False)
    BLOCK_BARRIER = Facts(carrier=Carrier.BLOCK_END, has_destination=False, is_block_barrier=True, waits=True)
    BLOCK_REDUCTION = Facts(carrier=Carrier.BLOCK_END, is_block_barrier=True, waits=True, combines=True)
    """A block barrier whose threads all get what they gave, combined."""
    BLOCK_ARRIVAL = Facts(carrier=Carrier.BLOCK_ARRIVAL, has_destination=False, is_block_barrier=True)
    """Counts at a block barrier without waiting there."""
    CLUSTER_ARRIVAL = Facts(carrier=Carrier.CLUSTER_ARRIVAL, has_destination=False)
    """Counts at the barrier of the block's cluster; the thread's next wait is for all that count until then."""
    CLUSTER_WAIT = Facts(carrier=Carrier.BLOCK_END, has_destination=False, waits=True)
    BRANCH = Facts(carrier=Carrier.BLOCK_END, has_destination=False, ends_block=True)
    SWITCH = Facts(carrier=Carrier.BLOCK_END, has_destination=False, ends_block=True)
    """A branch to the label of a list that an index picks."""
    CALL = Facts(carrier=Carrier.BLOCK_END, has_destination=False, ends_block=True, calls=True)
    """Of a function of the module."""
    HOST_CALL = Facts(carrier=Carrier.HOST, calls=True)
    """Of a function that the host provides (`calls.py`)."""
    RETURN = Facts(carrier=Carrier.BLOCK_END, has_destination=False, ends_block=True, leaves=True)
    """From a function; the kernel's ends the thread."""
    END = Facts(carrier=Carrier.BLOCK_END, has_destination=False, ends_block=True, leaves=True)
    """Of the thread."""
    TRAP = Facts(carrier=Carrier.TRAP, has_destination=False, ends_block=True, leaves=True)

    def __new__(cls, facts: Facts) -> Effect:
        """An effect's value is its place in the table: no two are one, whatever their columns."""
        del facts
        effect = object.__new__(cls)
        effect._value_ = len(cls.__members__)
        return effect

    def __init__(self, facts: Facts) -> None:
        """An effect has the columns itself."""
        for column in fields(Facts):
            object.__setattr__(self, column.name, getattr(facts, column.name))

    @property
    def has_meaning(self) -> bool:
        """Whether the row's meaning says what it does; executors carry control flow and barriers out themselves."""
        return self.carrier is Carrier.MEANING

    @property
    def writes(self) -> bool:
        """Whether it changes memory."""
        return any(kind != "load" for _, kind in self.accesses)
