"""Writes the pages of the reference from the tables and docstrings that they are about.

python docs/generate.py            writes every page
python docs/generate.py --check    writes nothing; 1 where a page is not up to date, with its name
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from generators import (
    checks,
    chips,
    command_line,
    counters,
    coverage,
    errors,
    exploits,
    figures,
    instructions,
    judge,
    kernels,
    memory_wall,
    nki,
    operators,
    python,
    sandbox,
    settings,
    timeline,
    times,
)

DOCS = Path(__file__).resolve().parent
NOTE = "<!-- Written by docs/generate.py: change what it is made from, then run the script. -->\n\n"

PAGES: Mapping[str, Callable[[], str]] = {
    "coverage.md": coverage.page,
    "exploits.md": exploits.page,
    "judge.md": judge.page,
    "kernels.md": kernels.page,
    "memory-wall.md": memory_wall.page,
    "operators.md": operators.page,
    "sandbox.md": sandbox.page,
    "times.md": times.page,
    "reference/checks.md": checks.page,
    "reference/chips.md": chips.page,
    "reference/command-line.md": command_line.page,
    "reference/counters.md": counters.page,
    "reference/errors.md": errors.page,
    "reference/instructions.md": instructions.page,
    "reference/nki.md": nki.page,
    "reference/python.md": python.page,
    "reference/settings.md": settings.page,
    "reference/timeline.md": timeline.page,
}
"""By the file's name below `docs/`."""
TEXTS: Mapping[str, Callable[[], str]] = {
    **{name: lambda page=page: NOTE + page() for name, page in PAGES.items()},
    "../README.md": figures.readme,
    **{name: lambda text=text: text for name, text in memory_wall.pictures().items()},
}
"""The same, pages of which a part is written, and figures: what the whole file should be."""


def stale_pages() -> list[str]:
    """The files that differ from what the script would write."""
    return [name for name, text in TEXTS.items() if _read(DOCS / name) != text()]


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def main() -> int:
    """Writes or checks; gives the exit status."""
    if sys.argv[1:] not in ([], ["--check"]):
        sys.stderr.write("usage: python docs/generate.py [--check]\n")
        return 2
    stale = stale_pages()
    if sys.argv[1:]:
        sys.stdout.write("".join(f"docs/{name} is not up to date: run python docs/generate.py\n" for name in stale))
        return 1 if stale else 0
    for name in stale:
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(TEXTS[name](), encoding="utf-8")
        sys.stdout.write(f"wrote docs/{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
