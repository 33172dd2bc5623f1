"""The enumerations of `nki.isa`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum

from triptych.core.errors import NkiError
from triptych.languages.nki.tracing.indexing import refuse
from triptych.languages.nki.tracing.tracer import current
from triptych.neuron.isa import Engine


class engine(Enum):  # the language's own name
    """Engines, for `engine=`."""

    tensor = 1
    scalar = 2
    gpsimd = 3
    dma = 4
    vector = 5
    sync = 6
    unknown = 0

    __hash__ = object.__hash__  # enums hash their names, in Python


class reduce_cmd(Enum):  # the language's own name
    """What an instruction does with the engine's reduction registers."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(IntEnum):  # the language's own name
    """Who generates the descriptors of a DMA; no matter to what is copied. Kernels write its numbers too."""

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(Enum):  # the language's own name
    """What a dynamic index outside a tensor does."""

    error = 0
    skip = 1


class NkiValidationError(NkiError):
    """A launch that no logical NeuronCore can have."""


class dma_engine(Enum):  # the language's own name
    """Who moves the data of `sendrecv`."""

    dma = "dma"
    gpsimd_dma = "gpsimd_dma"


class matmul_perf_mode(Enum):  # the language's own name
    """Fast modes of the Tensor engine."""

    none = "none"
    double_row = "double_row"


class nc_version(IntEnum):  # the language's own name
    """Generations of NeuronCores, which kernels compare."""

    gen2 = 2
    gen3 = 3
    gen4 = 4


def perf_mode_name(value: object) -> str:
    """The name of a `nisa.matmul_perf_mode`.

    Raises:
        NkiError: for anything else than a mode or its name, which AWS's library gives.
    """
    if isinstance(value, matmul_perf_mode):
        return value.name
    if isinstance(value, str) and value in matmul_perf_mode.__members__:
        return value
    if value == "double_row_gen3":  # Beta 1's name
        return matmul_perf_mode.double_row.name
    raise refuse(f"perf_mode={value!r} is no mode", "name one, such as nisa.matmul_perf_mode.double_row")


_ENGINES: Mapping[engine, Engine | None] = {one: None if one is engine.unknown else Engine(one.name) for one in engine}


def chosen_engine(value: object) -> Engine | None:
    """The engine that `engine=` names, None for `unknown`.

    Raises:
        NkiError: for something that is no engine; integers are none.
    """
    if isinstance(value, engine):
        return _ENGINES[value]
    raise refuse(f"engine={value!r} is no engine", "name one, such as nisa.engine.vector")


tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
unknown_engine = engine.unknown


def get_nc_sub_version() -> int:
    """The revision of the silicon: 0, the first, as nothing here depends on it."""
    current("nisa.get_nc_sub_version")
    return 0


def get_nc_version() -> nc_version:
    """The generation of the target."""
    return nc_version(current("nisa.get_nc_version").hardware.core_generation)
