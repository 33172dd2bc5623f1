"""`nki.isa` (nisa): one function an engine instruction, gathered from the files of the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from triptych.languages.nki import isa_dma, isa_enums, isa_gpsimd, isa_scalar, isa_tensor, isa_vector
from triptych.languages.nki.names import gather, missing_name

# pyright: reportWildcardImportFromLibrary=false
if TYPE_CHECKING:  # what `gather` finds there, for type checkers
    from triptych.languages.nki.isa_dma import *  # noqa: F403
    from triptych.languages.nki.isa_enums import *  # noqa: F403
    from triptych.languages.nki.isa_gpsimd import *  # noqa: F403
    from triptych.languages.nki.isa_scalar import *  # noqa: F403
    from triptych.languages.nki.isa_tensor import *  # noqa: F403
    from triptych.languages.nki.isa_vector import *  # noqa: F403

globals().update(gather("nki.isa", isa_dma, isa_enums, isa_gpsimd, isa_scalar, isa_tensor, isa_vector))


def __getattr__(name: str) -> NoReturn:
    """A name that the module does not have, or that is not implemented."""
    missing_name("nki.isa", name, globals())
