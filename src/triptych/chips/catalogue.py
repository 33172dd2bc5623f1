"""The chips that come with triptych, by name, and a user's own by path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from triptych.chips.chip import Chip, GpuChip, NeuronChip
from triptych.core.errors import ChipError, UnknownName, UsageError
from triptych.core.source import SourceLocation, home_expanded

_FOLDER = Path(__file__).parent / "data"

DEFAULT_BY_MACHINE: Mapping[str, str] = {"gpu": "h100", "neuron": "trn2"}
"""The chip on which a launch is placed where nobody named one for its machine."""


ChipChoice = str | os.PathLike[str] | Chip
"""What stands for a chip wherever one is asked for: its name, the path of a TOML file, or the chip itself."""


@cache
def names() -> tuple[str, ...]:
    """The names of the chips that come with triptych, sorted."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))


@cache
def targets(machine: str) -> tuple[str, ...]:
    """The compile targets of the chips of a machine (`gpu`, `neuron`) that come with triptych, each once, sorted."""
    chips = (_load_built_in(name) for name in names())
    return tuple(sorted({chip.target for chip in chips if chip.machine == machine}))


def load(chip: ChipChoice) -> Chip:
    """The chip of a name (`h100`, `H100 SXM` …), or of a TOML file of the user's own, which is read each time.

    A text that ends in `.toml` or has a slash in it is a path, as any `pathlib.Path` is. A chip is given back.

    Raises:
        UnknownName: where no chip has that name.
        ChipError: where the file cannot be read, or holds something that cannot be.
        UsageError: for anything else.
    """
    match chip:
        case GpuChip() | NeuronChip():
            return chip
        case os.PathLike():
            return _load_file(home_expanded(chip))
        case str():
            return _load_file(home_expanded(chip)) if chip.endswith(".toml") or "/" in chip else _load_named(chip)
    raise UsageError(
        f"a {type(chip).__name__}, {chip!r}, stands for no chip", hint="give its name or the path of a TOML file"
    )


@cache
def _load_named(name: str) -> Chip:
    key = name.strip().lower().replace(" ", "-").replace("_", "-")
    if key in names():
        return _load_built_in(key)
    aliases = _aliases()
    # `trainium-3` is `trainium3`: where a hyphen stands is nobody's to remember.
    found = aliases.get(key) or aliases.get(key.replace("-", ""))
    if found is None:
        raise UnknownName.of("chip", name, names(), aliases=aliases)
    return _load_built_in(found)


@cache
def _load_built_in(name: str) -> Chip:
    return _load_file(_FOLDER / f"{name}.toml")


@cache
def _aliases() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name in names():
        file = _FOLDER / f"{name}.toml"
        for alias in _reading().aliases_of(file.read_text(encoding="utf-8"), str(file)):
            found[alias] = name
    return found


def _load_file(path: Path) -> Chip:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise ChipError(
            f"cannot read the chip file: {reason}",
            where=SourceLocation(str(path), 0),
            hint=f"a chip is a TOML file, or one of {', '.join(names())}",
        ) from problem
    return _reading().read(text, str(path))


def _reading() -> ModuleType:
    """What reads chips' files, imported when there is one to be read: with TOML's grammar it takes a while."""
    return import_module("triptych.chips.reading")
