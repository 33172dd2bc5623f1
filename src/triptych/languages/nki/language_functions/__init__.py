"""`nki.language`, a file a kind of function: what is composed of instructions, and what makes and indexes tensors.

`nki.language` has what `PARTS` define of the names in `listing.py`.
"""

from triptych.languages.nki.language_functions import (
    constants,
    creation,
    debugging,
    elementwise,
    loops,
    movement,
    objects,
    programs,
    random,
    reductions,
    rounding,
    trigonometry,
)
from triptych.languages.nki.tracing import buffers, dtypes, indexing, operations, tensors

PARTS = (
    *(constants, creation, debugging, elementwise, loops, movement, objects, programs, random, reductions),
    *(rounding, trigonometry, buffers, dtypes, indexing, operations, tensors),
)
"""The files that define names of it."""
