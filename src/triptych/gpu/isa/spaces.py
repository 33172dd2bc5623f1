"""The table of state spaces (PTX manual, 5.1): a row says all that other code may ask of a space.

What generated code does at an access to a space stands in `lower/memory`: `ADMISSIONS` (`admission/`), `SHORT_WAYS`
(`short.py`), and `WINDOWS` (`windows.py`) for those that are one piece of memory. A modifier that no row names is an
error when the instruction table is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from triptych.gpu.hardware import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_SIZE


class Holder(Enum):
    """What has a memory of its own of a space."""

    GRID = "grid"
    CLUSTER = "cluster"
    BLOCK = "block"
    THREAD = "thread"


class Cost(Enum):
    """What requests to a space are counted in beside bytes; the values end the counters' names."""

    SECTORS = "sectors"
    WAVEFRONTS = "wavefronts"


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """A state space; there is one object of each, in unpickled values too."""

    name: str
    """As messages call it."""
    holds: str
    modifiers: tuple[str, ...]
    """How opcodes name it; `""`: by no modifier."""
    holder: Holder
    window: int = 0
    """What `cvta` adds to an address of it; 0 where its addresses are generic ones as they are."""
    address_bits: int = 64
    """That reach all of it."""
    read_only: bool = False
    counted_as: str | None = None
    """How the counters of its accesses begin; None: they are not memory traffic."""
    cost: Cost | None = None
    reaches: tuple[Space, ...] = ()
    """The spaces in which an access counts, and faults, each at a site of its own; empty: in this one."""
    served_as: Space | None = None
    """The space whose helpers serve it, as its memory is a part of that one's; None: it has its own."""
    vector_bytes: int = 16
    """The widest vector that an access moves (PTX manual, 9.7.9.8 and 9.7.9.11)."""
    uniform_at_uniform_address: bool = False
    """Whether a load gives one value for all lanes where they agree on the address."""
    in_clusters: Space | None = None
    """What it is in a kernel that makes addresses of other blocks' memory (`mapa`); None: the same."""
    passes_results: bool = False
    """Whether a thread finds in it what functions that it called have seen."""
    flushes_sums: bool = False
    """Whether atomic sums of singles take and give subnormals as zeros (PTX manual, 9.7.13.5)."""

    def __str__(self) -> str:
        """The name."""
        return self.name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        """Pickled by name."""
        return _space_called, (self.name,)

    @property
    def sites(self) -> tuple[Space, ...]:
        """The spaces in which an access counts."""
        return self.reaches or (self,)

    @property
    def helper(self) -> Space:
        """The space whose helpers serve it."""
        return self.served_as or self

    @property
    def others_write(self) -> bool:
        """Whether another thread may change what a thread reads there."""
        return self.holder is not Holder.THREAD and not self.read_only

    def has_in_window(self, address: int) -> bool:
        """Whether a generic address lies in its window; never where its addresses are generic ones as they are."""
        return bool(self.window) and self.window <= address < self.window + WINDOW_SIZE


GLOBAL = Space(
    "global", "what the host allocates, and a module's variables", ("global",), Holder.GRID,
    counted_as="global", cost=Cost.SECTORS, vector_bytes=32, flushes_sums=True,
)  # fmt: skip
CONST = Space(
    "const", "a module's constants: a part of global memory here", ("const",), Holder.GRID,
    read_only=True, counted_as="global", cost=Cost.SECTORS, reaches=(GLOBAL,), served_as=GLOBAL,
)  # fmt: skip
PARAM = Space(
    "param", "a kernel's parameters", ("param", "param::entry"), Holder.GRID,
    window=PARAM_WINDOW, read_only=True, served_as=GLOBAL, uniform_at_uniform_address=True,
)  # fmt: skip
SHARED = Space(
    "shared", "the block's shared memory", ("shared", "shared::cta"), Holder.BLOCK,
    window=SHARED_WINDOW, address_bits=32, counted_as="shared", cost=Cost.WAVEFRONTS, uniform_at_uniform_address=True,
)  # fmt: skip
CLUSTER = Space(
    "shared::cluster", "the shared memory of all blocks of the cluster; `hardware.py` says how addresses name them",
    ("shared::cluster",), Holder.CLUSTER, window=SHARED_WINDOW, address_bits=32, counted_as="shared.cluster",
)  # fmt: skip
ASYNCHRONOUS = Space(
    "async shared", "shared memory of the cluster, as asynchronous copies read and write it", (), Holder.CLUSTER,
    address_bits=32, counted_as="shared.async", served_as=CLUSTER,
)  # fmt: skip
TENSOR_SHARED = Space(
    "tensor shared", "the block's shared memory, as tensor cores read it through matrix descriptors", (), Holder.BLOCK,
    address_bits=32, counted_as="shared.tensor", served_as=SHARED, uniform_at_uniform_address=True,
)  # fmt: skip
LOCAL = Space("local", "a thread's own memory", ("local",), Holder.THREAD, window=LOCAL_WINDOW, counted_as="local")
FRAME = Space(
    "frame", "the parameters of a call: a part of the thread's local memory", ("param::func",), Holder.THREAD,
    window=LOCAL_WINDOW, served_as=LOCAL, passes_results=True,
)  # fmt: skip
GENERIC_IN_CLUSTERS = Space(
    "generic_in_clusters", "all that has generic addresses, those of other blocks' shared memory among them",
    (), Holder.GRID, reaches=(GLOBAL, SHARED, CLUSTER, LOCAL), vector_bytes=32,
)  # fmt: skip
GENERIC = Space(
    "generic", "all that has generic addresses", ("",), Holder.GRID, reaches=(GLOBAL, SHARED, LOCAL),
    vector_bytes=32, in_clusters=GENERIC_IN_CLUSTERS,
)  # fmt: skip

SPACES = (
    GLOBAL, CONST, PARAM, SHARED, CLUSTER, ASYNCHRONOUS, TENSOR_SHARED, LOCAL, FRAME, GENERIC, GENERIC_IN_CLUSTERS
)  # fmt: skip
BY_MODIFIER: Mapping[str, Space] = {modifier: space for space in SPACES for modifier in space.modifiers}
"""The spaces by how opcodes name them."""


def _space_called(name: str) -> Space:
    return next(space for space in SPACES if space.name == name)


def space_at(address: int) -> Space:
    """The space that a generic address reaches."""
    windowed = (space for space in GENERIC.reaches if space.has_in_window(address))
    return next(windowed, GLOBAL)
