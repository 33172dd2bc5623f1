"""`nki.isa` (nisa): one function an engine instruction, gathered from the files of the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from triptych.languages.nki.isa_functions import PARTS, enums
from triptych.languages.nki.names import gather, missing_name

# pyright: reportWildcardImportFromLibrary=false
if TYPE_CHECKING:  # what `gather` finds there, for type checkers
    from triptych.languages.nki.isa_functions.cores import *  # noqa: F403
    from triptych.languages.nki.isa_functions.dma import *  # noqa: F403
    from triptych.languages.nki.isa_functions.enums import *  # noqa: F403
    from triptych.languages.nki.isa_functions.function import *  # noqa: F403
    from triptych.languages.nki.isa_functions.gpsimd import *  # noqa: F403
    from triptych.languages.nki.isa_functions.gpsimd_gather import *  # noqa: F403
    from triptych.languages.nki.isa_functions.random import *  # noqa: F403
    from triptych.languages.nki.isa_functions.registers import *  # noqa: F403
    from triptych.languages.nki.isa_functions.scalar import *  # noqa: F403
    from triptych.languages.nki.isa_functions.tensor import *  # noqa: F403
    from triptych.languages.nki.isa_functions.vector import *  # noqa: F403
    from triptych.languages.nki.tracing.registers import *  # noqa: F403

constants = enums
globals().update(gather("nki.isa", *PARTS))


def __getattr__(name: str) -> NoReturn:
    """A name that the module does not have, or that is not implemented."""
    missing_name("nki.isa", name, globals())
