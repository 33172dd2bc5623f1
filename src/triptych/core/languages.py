"""The table of languages: what a program may be written in, on which machine it runs, what switches it on in a script.

A language is a folder of `languages/` of the same name. The programs that it makes, the report's schema and colours,
`triptych run` and the command's help read this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """A row."""

    name: str
    """As programs, records and reports have it."""
    title: str
    """As sentences have it."""
    machine: str
    """The machine that its programs run on: `gpu` or `neuron`."""
    modules: tuple[str, ...] = ()
    """The modules whose import by a script switches it on: `triptych.languages.<name>.activate()`. None: it is always
    on."""
    stands_in: bool = False
    """Whether modules of ours take the place of those, unless somebody else's are installed; else the imported ones are
    adapted, after their import."""


CUDA = Language("cuda", "CUDA C++", "gpu")
TRITON = Language("triton", "Triton", "gpu", ("triton",))
NKI = Language("nki", "NKI", "neuron", ("nki", "neuronxcc"), stands_in=True)
PTX = Language("ptx", "PTX", "gpu")

LANGUAGES: Mapping[str, Language] = {row.name: row for row in (CUDA, TRITON, NKI, PTX)}
"""The table, by name."""


def titles() -> str:
    """All of them, as a sentence has them: `CUDA C++, Triton, NKI and PTX`."""
    *others, last = (row.title for row in LANGUAGES.values())
    return f"{', '.join(others)} and {last}"
