"""The table of effects: what instructions do beside computing, and what that asks of whoever carries them out."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Facts:
    """The columns of an effect."""

    name: str
    accesses: tuple[tuple[Space | None, Access], ...] = ()
    """The accesses to memory that each execution makes: the space, None for the one that the opcode names, and what
    the access does there. A memory site follows from each, and the helpers that serve it."""
    lane_bytes: int = 0
    """Bytes that one lane moves; 0: its elements, or what an operand says (`size_operand`)."""
    unit_bytes: int = 0
    """Bytes of the words that it moves; 0: those of an element."""
    size_operand: bool = False
    """Whether the first literal among its operands says how many bytes a lane moves."""
    observes: Observation = Observation.NOTHING
    """Of a row that does not say otherwise."""
    orders: bool = False
    """Whether it orders, awaits or prepares accesses: there is nothing to do where each takes effect at once."""
    has_meaning: bool = True
    """Whether the row's meaning says what it does; executors carry control flow and barriers out themselves."""
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
    """Whether the threads of the launch's block wait for each other at it."""
    combines: bool = False
    """Whether its last operand is a predicate of which all threads at the barrier get the combination."""


class Effect(Enum):
    """What an instruction does beyond computing its destinations from its sources; the columns are those of `Facts`."""

    NONE = Facts("none")
    LOAD = Facts("load", accesses=((None, "load"),), observes=Observation.WEAK)
    LOAD_MATRIX = Facts("load matrix", accesses=((SHARED, "load"),), lane_bytes=16, unit_bytes=4)
    """A load in which lanes give addresses for each other (`ldmatrix`)."""
    STORE = Facts("store", accesses=((None, "store"),), has_destination=False)
    ATOMIC = Facts("atomic", accesses=((None, "atomic"),), observes=Observation.STRONG)
    COPY = Facts(
        "copy", accesses=((GLOBAL, "load"), (SHARED, "store")), unit_bytes=4, size_operand=True, has_destination=False
    )
    """From global to shared memory."""
    ORDER = Facts("order", orders=True, has_destination=False)
    WARP = Facts("warp")
    """Lanes of the warp exchange values."""
    WARP_BARRIER = Facts("warp barrier", has_meaning=False, has_destination=False)
    BLOCK_BARRIER = Facts("block barrier", has_meaning=False, has_destination=False, is_block_barrier=True, waits=True)
    BLOCK_REDUCTION = Facts("block reduction", has_meaning=False, is_block_barrier=True, waits=True, combines=True)
    """A block barrier whose threads all get what they gave, combined."""
    BLOCK_ARRIVAL = Facts("block arrival", has_meaning=False, has_destination=False, is_block_barrier=True)
    """Counts at a block barrier without waiting there."""
    BRANCH = Facts("branch", has_meaning=False, has_destination=False, ends_block=True)
    SWITCH = Facts("switch", has_meaning=False, has_destination=False, ends_block=True)
    """A branch to the label of a list that an index picks."""
    CALL = Facts("call", has_meaning=False, has_destination=False, ends_block=True, calls=True)
    """Of a function of the module."""
    HOST_CALL = Facts("host call", has_meaning=False, calls=True)
    """Of a function that the host provides (`calls.py`)."""
    END = Facts("end", has_meaning=False, has_destination=False, ends_block=True, leaves=True)
    """Of the thread."""
    TRAP = Facts("trap", has_meaning=False, has_destination=False, ends_block=True, leaves=True)

    def __init__(self, facts: Facts) -> None:
        """The columns as attributes."""
        self.accesses = facts.accesses
        self.lane_bytes = facts.lane_bytes
        self.unit_bytes = facts.unit_bytes
        self.size_operand = facts.size_operand
        self.observes = facts.observes
        self.orders = facts.orders
        self.has_meaning = facts.has_meaning
        self.has_destination = facts.has_destination
        self.ends_block = facts.ends_block
        self.leaves = facts.leaves
        self.calls = facts.calls
        self.is_block_barrier = facts.is_block_barrier
        self.waits = facts.waits
        self.combines = facts.combines

    @property
    def writes(self) -> bool:
        """Whether it changes memory."""
        return any(kind != "load" for _, kind in self.accesses)
