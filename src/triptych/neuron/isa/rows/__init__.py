"""The rows of the engine table, a file an engine or a kind of its instructions; importing them fills the table."""

from triptych.neuron.isa.rows import (
    collectives,
    control,
    cores,
    dma,
    gpsimd,
    gpsimd_gather,
    microscaling,
    random,
    scalar,
    tensor,
    variable_collectives,
    vector,
    vector_reduction,
    vector_search,
)

ROW_MODULES = (
    tensor, microscaling, vector, vector_reduction, vector_search, scalar, gpsimd, gpsimd_gather, random,
    dma, cores, collectives, variable_collectives, control,
)  # fmt: skip
"""The files of the table."""
