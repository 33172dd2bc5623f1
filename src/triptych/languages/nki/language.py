"""`nki.language` (nl): what kernels of both generations import, gathered from the files that define it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from triptych.languages.nki.language_functions import PARTS
from triptych.languages.nki.names import gather, missing_name

# pyright: reportWildcardImportFromLibrary=false
if TYPE_CHECKING:  # what `gather` finds there, for type checkers
    from triptych.languages.nki.language_functions.constants import *  # noqa: F403
    from triptych.languages.nki.language_functions.creation import *  # noqa: F403
    from triptych.languages.nki.language_functions.debugging import *  # noqa: F403
    from triptych.languages.nki.language_functions.elementwise import *  # noqa: F403
    from triptych.languages.nki.language_functions.loops import *  # noqa: F403
    from triptych.languages.nki.language_functions.movement import *  # noqa: F403
    from triptych.languages.nki.language_functions.objects import *  # noqa: F403
    from triptych.languages.nki.language_functions.programs import *  # noqa: F403
    from triptych.languages.nki.language_functions.random import *  # noqa: F403
    from triptych.languages.nki.language_functions.reductions import *  # noqa: F403
    from triptych.languages.nki.language_functions.rounding import *  # noqa: F403
    from triptych.languages.nki.language_functions.trigonometry import *  # noqa: F403
    from triptych.languages.nki.tracing.buffers import *  # noqa: F403
    from triptych.languages.nki.tracing.dtypes import *  # noqa: F403
    from triptych.languages.nki.tracing.indexing import *  # noqa: F403
    from triptych.languages.nki.tracing.operations import *  # noqa: F403
    from triptych.languages.nki.tracing.tensors import *  # noqa: F403

globals().update(gather("nki.language", *PARTS))


def __getattr__(name: str) -> NoReturn:
    """A name that the language does not have, or that is not implemented."""
    missing_name("nki.language", name, globals())
