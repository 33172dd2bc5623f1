"""`nki.language` (nl): what kernels of both generations import, gathered from the files that define it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from triptych.languages.nki import buffers, creation, dtypes, elementwise, indexing, movement, reductions, tensors
from triptych.languages.nki.names import gather, missing_name

# pyright: reportWildcardImportFromLibrary=false
if TYPE_CHECKING:  # what `gather` finds there, for type checkers
    from triptych.languages.nki.buffers import *  # noqa: F403
    from triptych.languages.nki.creation import *  # noqa: F403
    from triptych.languages.nki.dtypes import *  # noqa: F403
    from triptych.languages.nki.elementwise import *  # noqa: F403
    from triptych.languages.nki.indexing import *  # noqa: F403
    from triptych.languages.nki.movement import *  # noqa: F403
    from triptych.languages.nki.reductions import *  # noqa: F403
    from triptych.languages.nki.tensors import *  # noqa: F403

globals().update(
    gather("nki.language", buffers, creation, dtypes, elementwise, indexing, movement, reductions, tensors)
)


def __getattr__(name: str) -> NoReturn:
    """A name that the language does not have, or that is not implemented."""
    missing_name("nki.language", name, globals())
