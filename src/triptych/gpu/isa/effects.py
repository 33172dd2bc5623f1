"""The table of effects: what instructions do beside computing, and what that asks of whoever carries them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from triptych.core.memory_access import Access
from triptych.gpu.isa.spaces import ASYNCHRONOUS, CLUSTER, GLOBAL, SHARED, TENSOR_SHARED, Space


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
    is_bulk: bool = False
    """Whether a lane moves any number of bytes, and a helper of its own serves it, which makes all its accesses."""
    copies_boxes: bool = False
    """Whether a lane copies a box of a tensor, as a tensor map says; a helper of its own serves it, as before."""
    follows_descriptors: bool = False
    """Whether the warp reads matrices as descriptors say; a helper of its own serves it, as before."""
    completes: bool = False
    """Whether it may complete transactions of an mbarrier."""
    size_operand: bool = False
    """Whether the third source, a literal, says how many bytes a lane moves."""
    generic: tuple[Space, Space] | None = None
    """The space that an address without a space in the opcode must lie in, where that is not all that generic ones
    reach: in most kernels, and in those that make addresses of other blocks' shared memory."""
    observes: Observation = Observation.NOTHING
    """Of a row that does not say otherwise."""
    is_asynchronous: bool = False
    """Whether it reads or writes shared memory at some time until its threads wait for it."""
    on_stack: bool = False
    """Whether it looks at the thread's stack or changes it: the threads of its kernel have one."""
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


_COPIES: Mapping[str, Any] = {"is_asynchronous": True, "has_destination": False}
_BOXES: Mapping[str, Any] = {**_COPIES, "copies_boxes": True, "lane_bytes": 16}
_BULK: Mapping[str, Any] = {**_COPIES, "is_bulk": True, "completes": True, "lane_bytes": 16}


class Effect(Facts, Enum):
    """What an instruction does beyond computing its destinations from its sources; the columns are those of `Facts`."""

    NONE = Facts()
    LOAD = Facts(accesses=((None, "load"),), observes=Observation.WEAK)
    LOAD_MATRIX = Facts(accesses=((SHARED, "load"),), lane_bytes=16, unit_bytes=4)
    """A load in which lanes give addresses for each other (`ldmatrix`)."""
    STORE = Facts(accesses=((None, "store"),), has_destination=False)
    STORE_MATRIX = Facts(accesses=((SHARED, "store"),), lane_bytes=16, unit_bytes=4, has_destination=False)
    """The other way round (`stmatrix`)."""
    LOAD_FRAGMENT = Facts(accesses=((None, "load"),), observes=Observation.WEAK)
    """Loads, of each lane its elements of a matrix at the address that all give (`wmma.load`)."""
    STORE_FRAGMENT = Facts(accesses=((None, "store"),), has_destination=False)
    ATOMIC = Facts(accesses=((None, "atomic"),), observes=Observation.STRONG)
    COPY = Facts(**_COPIES, accesses=((GLOBAL, "load"), (SHARED, "store")), unit_bytes=4, size_operand=True)
    """From global to shared memory."""
    COMMIT_COPIES = Facts(orders=True, has_destination=False)
    """Makes a group of the thread's since the last one."""
    AWAIT_COPIES = Facts(orders=True, has_destination=False)
    """Waits until so many groups at most are not complete."""
    AWAIT_ALL_COPIES = Facts(orders=True, has_destination=False)
    """Waits for those too that are in no group."""
    MBARRIER = Facts(accesses=((None, "atomic"),), generic=(SHARED, SHARED))
    """Changes an mbarrier of the block (`mbarrier_object.py`)."""
    MBARRIER_COPIES = Facts(accesses=((None, "atomic"),), generic=(SHARED, SHARED))
    """Has an mbarrier of the block told when the thread's copies to shared memory are complete."""
    MBARRIER_REMOTE = Facts(accesses=((None, "atomic"),), generic=(SHARED, CLUSTER))
    """Changes an mbarrier that may be of another block of the cluster."""
    MBARRIER_TEST = Facts(accesses=((None, "atomic"),), generic=(SHARED, SHARED), observes=Observation.STRONG)
    """Tells whether a phase of an mbarrier of the block has ended."""
    BULK_LOAD = Facts(**_BULK, accesses=((GLOBAL, "load"), (ASYNCHRONOUS, "store")))
    """A copy of any size by one thread, from global to shared memory (`bulk.py`)."""
    BULK_STORE = Facts(**_BULK, accesses=((ASYNCHRONOUS, "load"), (GLOBAL, "store")))
    BULK_EXCHANGE = Facts(**_BULK, accesses=((ASYNCHRONOUS, "load"), (ASYNCHRONOUS, "store")))
    BULK_REDUCTION = Facts(**_BULK, accesses=((ASYNCHRONOUS, "load"), (GLOBAL, "atomic")))
    BULK_EXCHANGED_REDUCTION = Facts(**_BULK, accesses=((ASYNCHRONOUS, "load"), (ASYNCHRONOUS, "atomic")))
    COMMIT_BULK = Facts(orders=True, has_destination=False)
    """Makes a group of the thread's copies since the last one that no mbarrier is told of."""
    AWAIT_BULK = Facts(orders=True, has_destination=False)
    """Waits until so many groups at most are not complete, or have not read their sources."""
    STORE_ASYNC = Facts(**_COPIES, accesses=((ASYNCHRONOUS, "store"),), completes=True)
    """A store that completes transactions of an mbarrier."""
    REDUCTION_ASYNC = Facts(**_COPIES, accesses=((ASYNCHRONOUS, "atomic"),), completes=True)
    TENSOR_LOAD = Facts(**_BOXES, completes=True, accesses=((GLOBAL, "load"), (ASYNCHRONOUS, "store")))
    """A copy of a box of a tensor by one thread, from global to shared memory (`tensor_copy.py`)."""
    TENSOR_STORE = Facts(**_BOXES, accesses=((ASYNCHRONOUS, "load"), (GLOBAL, "store")))
    TENSOR_REDUCTION = Facts(**_BOXES, accesses=((ASYNCHRONOUS, "load"), (GLOBAL, "atomic")))
    COPY_MAP = Facts(accesses=((SHARED, "load"), (GLOBAL, "store")), lane_bytes=4, unit_bytes=4, has_destination=False)
    """The lanes of a warp copy a tensor map from shared to global memory, a word each."""
    STORE_FIELD = Facts(accesses=((None, "store"),), has_destination=False)
    """A store of a field of a tensor map."""
    STACK = Facts(on_stack=True)
    ORDER = Facts(orders=True, has_destination=False)
    WARP = Facts()
    """Lanes of the warp exchange values."""
    MULTIPLY = Facts()
    """The warp multiplies matrices that its lanes hold together."""
    MULTIPLY_GROUP = Facts(
        accesses=((TENSOR_SHARED, "load"),), follows_descriptors=True, lane_bytes=16, is_asynchronous=True
    )
    """Four warps multiply matrices that lie in shared memory (`wgmma.py`)."""
    FENCE_PRODUCTS = Facts(has_destination=False)
    """What registers hold is there for such multiplications; as they are done at once, there is nothing to do."""
    COMMIT_PRODUCTS = Facts(has_destination=False)
    """Makes a group of those since the last one."""
    AWAIT_PRODUCTS = Facts(has_destination=False)
    """Waits until so many groups at most are not complete."""
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
        return self is not Effect.MBARRIER_TEST and any(kind != "load" for _, kind in self.accesses)
