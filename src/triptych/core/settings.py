"""Settings: the only place that reads environment variables of triptych; everything else receives values."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import Field, dataclass, field, fields, replace
from operator import index
from pathlib import Path
from types import NoneType
from typing import Any, SupportsFloat, SupportsIndex, cast, get_args, get_type_hints

from triptych.core.errors import SettingError, UnknownName
from triptych.core.source import home_expanded


def usable_cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, with the environment variable that sets it; `Kind` says how a field is read."""

    chip: str | None = field(default=None, metadata={"or_path": True})
    """TRIPTYCH_CHIP: whose roofline; a chip's name or the path of a TOML file, the machine's default chip where it is
    not said."""
    target: str | None = None
    """TRIPTYCH_TARGET: the compile target (`sm_80`), the chip's own where it is not said."""
    workers: int = field(default_factory=usable_cores)
    """TRIPTYCH_WORKERS: threads over blocks; the number of usable cores where it is not said."""
    cache_folder: Path = field(default=Path("~/.cache/triptych"), metadata={"variable": "TRIPTYCH_CACHE"})
    """TRIPTYCH_CACHE: the folder of compiled kernels."""
    cache_bytes: int = field(default=1 << 30, metadata={"least": 0})
    """TRIPTYCH_CACHE_BYTES: the most that the folder may hold; the least recently used go first. 0: no cache."""
    budget: int = 1 << 24
    """TRIPTYCH_BUDGET: the loop iterations that one warp may run before the launch counts as hung; for the Python of an
    NKI kernel, while it records nothing, a microsecond of a processor each, half a second at least."""
    trace_limit: int = 1 << 19
    """TRIPTYCH_TRACE_LIMIT: the instructions and tensors that the trace of an NKI kernel may have; one with more counts
    as hung. Each takes about a tenth of a millisecond to trace."""
    nki_lenient: bool = False
    """TRIPTYCH_NKI_LENIENT: whether what AWS's compiler refuses in an NKI kernel, and its simulator does not, is a
    finding of `nki.compiler` in the place of an error."""
    nki_keep_traces: bool = True
    """TRIPTYCH_NKI_KEEP_TRACES: whether a call of an NKI kernel takes the trace of an earlier one, where its Python
    cannot but make the same: it names constants, functions and the language alone, and the arguments are alike."""
    stack_bytes: int = 16 << 10
    """TRIPTYCH_STACK_BYTES: the stack of a thread in kernels whose functions call themselves, or that allocate there
    (`alloca`); a device's limit is 1 KiB where a program does not set it."""
    heap_bytes: int = 8 << 20
    """TRIPTYCH_HEAP_BYTES: the heap that kernels allocate from with `malloc`; CUDA's own default."""
    printf_bytes: int = field(default=1 << 20, metadata={"least": 0})
    """TRIPTYCH_PRINTF_BYTES: what one launch may print; CUDA's own default. What is beyond is cut."""
    benchmark_points: int | None = field(default=None, metadata={"least": 0})
    """TRIPTYCH_BENCHMARK_POINTS: how many values of its x axis a `triton.testing.perf_report` measures, the first ones;
    all where it is not said, with 0 it measures nothing."""
    benchmark_configurations: int | None = None
    """TRIPTYCH_BENCHMARK_CONFIGURATIONS: how many configurations a Triton autotuner compiles and tries, at equal
    distances in the list that it is left with; all where it is not said."""
    benchmark_blocks: int | None = None
    """TRIPTYCH_BENCHMARK_BLOCKS: how many blocks of a grid run, at equal distances, where a Triton kernel is launched
    to be timed alone: by an autotuner, by `triton.testing.do_bench`. The time is modelled from those, for the whole
    grid, and what the launch writes is incomplete; of a cooperative launch all run. All where it is not said."""
    benchmark_repeats: int | None = None
    """TRIPTYCH_BENCHMARK_REPEATS: how often a Triton kernel, or a product, convolution or attention of torch's on the
    simulated device, is run by the same lines with arguments of the same kind, as loops of benchmarks do; from then on
    it only takes the time that the last run took, and writes nothing. Always where it is not said."""
    optimise: str = field(default="hot", metadata={"choices": ("hot", "always", "never")})
    """TRIPTYCH_OPTIMISE: when a kernel's code is made with optimisation, which takes three to five times as long:
    `hot`, once the kernel has run for longer than that; `always`, before its first launch; `never`. What it computes
    and counts is the same."""
    block_order: str = field(default="ascending", metadata={"choices": ("ascending", "descending")})
    """TRIPTYCH_BLOCK_ORDER: in which order the blocks of a grid (its clusters, where it has these) begin, and with them
    what they print and which fault counts as the first; the programs of an NKI grid likewise. Counts are the same in
    both orders; a kernel whose blocks wait for ones before them may hang in the second, as it may on a device."""
    undefined_byte: int | None = field(default=None, metadata={"least": 0, "most": 255})
    """TRIPTYCH_UNDEFINED_BYTE: what every byte of memory holds that nobody has written: new arrays, and for each new
    block its shared memory and its threads' local memory, and allocations of the heap. Where it is not said, 0xFF in
    arrays (NaN, or -1) and 0xA5 in the others."""
    launch_budget: int | None = None
    """TRIPTYCH_LAUNCH_BUDGET: the loop iterations that all warps of a launch on a GPU may run together, one more for
    each warp, before it counts as hung; looked at when a warp has run 65536 of them or steps aside. With it one worker
    runs the launch, so that the same block is stopped every time. No limit where it is not said."""
    tensor_numerics: str = field(default="fast", metadata={"choices": ("fast", "hardware")})
    """TRIPTYCH_TENSOR_NUMERICS: how tensor cores round: `fast`, each sum in f32 to nearest even, or `hardware`, as an
    H200 does it, to the bit, which takes up to eight times as long."""


_MOST = (1 << 63) - 1
"""The largest whole number: generated code has it in 64 bits with a sign."""
_WORDS: Mapping[str, bool] = {"1": True, "true": True, "on": True, "yes": True} | {
    "0": False, "false": False, "off": False, "no": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kind:
    """How the values of a setting are read: its type, and what its field's `metadata` says."""

    variable: str
    """The environment variable that sets it: `metadata["variable"]`, else `TRIPTYCH_<NAME>`."""
    type: type
    optional: bool
    """Whether None is one of its values."""
    least: int | float
    """The least number that it takes: `metadata["least"]`, else 1."""
    or_path: bool
    """Whether a text may also be a file's path: `metadata["or_path"]`."""
    choices: tuple[str, ...]
    """The texts that it takes, if not all: `metadata["choices"]`."""
    most: int
    """The largest whole number that it takes: `metadata["most"]`, else what 64 bits with a sign hold."""

    def checked(self, value: object, shown: str) -> object:
        """A value of the setting, also from text; `shown` is how messages write it.

        Raises:
            SettingError: for a value that it does not take.
        """
        if value is None and self.optional:
            return None
        try:
            return _READERS[self.type](self, value)
        except ValueError as problem:
            raise SettingError(f"{shown}: expected {problem}") from None


def kinds_of(settings_type: type) -> Mapping[str, Kind]:
    """How the fields of a dataclass of settings are read, by name.

    Raises:
        TypeError: for a field of a type that no text can be read as.
    """
    types = get_type_hints(settings_type)
    return {one.name: _kind_of(one, types[one.name]) for one in fields(settings_type)}


def _kind_of(setting: Field[Any], annotation: Any) -> Kind:  # noqa: ANN401  # whatever an annotation is
    alternatives = get_args(annotation) or (annotation,)
    (kind, *others) = (one for one in alternatives if one is not NoneType)
    if others or kind not in _READERS:
        raise TypeError(f"setting '{setting.name}': {annotation} cannot be read from text")
    variable = setting.metadata.get("variable", f"TRIPTYCH_{setting.name.upper()}")
    return Kind(
        variable,
        kind,
        NoneType in alternatives,
        setting.metadata.get("least", 1),
        setting.metadata.get("or_path", False),
        setting.metadata.get("choices", ()),
        setting.metadata.get("most", _MOST),
    )


def _read_bool(_: Kind, value: object) -> bool:
    found = value if isinstance(value, bool) else _WORDS.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        raise ValueError("1 or 0 (true or false, on or off, yes or no)")
    return found


def _read_int(kind: Kind, value: object) -> int:
    try:
        number = int(value, 0) if isinstance(value, str) else index(cast("SupportsIndex", value))
    except (TypeError, ValueError):
        number = None
    if number is None or isinstance(value, bool) or not kind.least <= number <= kind.most:
        if kind.most < _MOST:
            raise ValueError(f"a whole number of {kind.least} to {kind.most}")
        beyond = number is not None and number > _MOST
        raise ValueError(f"a whole number of {kind.least} or more{', below 2**63' if beyond else ''}")
    return number


def _read_float(kind: Kind, value: object) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(cast("SupportsFloat | str", value))
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or number < kind.least:
        raise ValueError(f"a number of {kind.least} or more")
    return number


def _read_path(_: Kind, value: object) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise ValueError("the path of a folder")
    return Path(value)


def _read_text(kind: Kind, value: object) -> str:
    if kind.or_path and isinstance(value, Path):
        return os.path.join(os.curdir, os.path.expanduser(value))  # with a slash in it, it is no name
    if not isinstance(value, str) or not value:
        raise ValueError("a name or the path of a file" if kind.or_path else "a name")
    if kind.choices and value not in kind.choices:
        raise ValueError(" or ".join(kind.choices))
    return value


_READERS: Mapping[type, Callable[[Kind, object], object]] = {
    bool: _read_bool,
    int: _read_int,
    float: _read_float,
    Path: _read_path,
    str: _read_text,
}
"""By type: a setting's value from text or from a value; a `ValueError` says what is expected."""
KINDS: Mapping[str, Kind] = kinds_of(Settings)
"""Of each setting."""


def _checked(name: str, value: object, shown: str) -> object:
    found = KINDS[name].checked(value, shown)
    return _home_expanded(found, shown) if isinstance(found, Path) else found


def _home_expanded(path: Path, shown: str) -> Path:
    expanded = home_expanded(path)
    if str(expanded).startswith("~"):
        raise SettingError(f"{shown}: there is no home directory of {path.parts[0]}", hint="name a folder by its path")
    return expanded


def _read_environment() -> Settings:
    found: dict[str, object] = {}
    for name, kind in KINDS.items():
        text, default = os.environ.get(kind.variable), getattr(_DEFAULT, name)
        if text:
            found[name] = _checked(name, text, f"{kind.variable}={text!r}")
        elif isinstance(default, Path):
            found[name] = _home_expanded(default, f"{kind.variable} is not set, and for {default}")
    return Settings(**found)  # type: ignore[arg-type]


_DEFAULT = Settings()
_environment: Mapping[bytes, bytes] = cast(Any, os.environ)._data
"""The dict behind `os.environ`, whose own `get` takes 20 times as long for a variable that is not set."""
_VARIABLES = tuple(os.fsencode(variable) for variable in ("HOME", *(kind.variable for kind in KINDS.values())))
"""All that settings depend on."""
_read: tuple[tuple[bytes | None, ...], Settings] | None = None
"""The variables' values when the environment was last read, and what was read."""
_current: ContextVar[Settings | None] = ContextVar("triptych_settings", default=None)


def settings() -> Settings:
    """The settings in force here. Quick: the environment is read again only where a variable has changed."""
    global _read
    inside = _current.get()
    if inside is not None:
        return inside
    found = tuple(map(_environment.get, _VARIABLES))
    if _read is None or _read[0] != found:
        _read = found, _read_environment()
    return _read[1]


@contextmanager
def scope(**changes: object) -> Generator[Settings]:
    """Settings changed inside a `with` block: `with scope(workers=1): …`.

    Raises:
        UnknownName: for a setting that there is not.
        SettingError: for a value that a setting does not take.
    """
    for name in changes:
        if name not in KINDS:
            raise UnknownName.of("setting", name, KINDS)
    checked = {name: _checked(name, value, f"{name}={value!r}") for name, value in changes.items()}
    changed = replace(settings(), **checked)  # type: ignore[arg-type]
    token = _current.set(changed)
    try:
        yield changed
    finally:
        _current.reset(token)
