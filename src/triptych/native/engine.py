"""LLVM: modules to object code, object code to functions. Object code is kept in the cache on disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import partial

import llvmlite.binding as llvm
from llvmlite import ir

from triptych.core.cache import Cache, key_of
from triptych.core.cache import cache as disk_cache
from triptych.core.forks import library_lock
from triptych.core.undisturbed import beside
from triptych.native.cache_digest import cache_digest
from triptych.native.object_code import generate, linking_machine

OWN_SYMBOLS = "triptych."
"""How the functions are called that units make for each other; the rest are LLVM's and the C library's."""
_KIND = "object"
"""What the cache calls object code."""
_THREADS = 2
"""More would not help: a third of the time is Python's, one thread at a time."""
_LOCK = library_lock()
_SHARED: dict[str, int] = {}
"""The addresses of functions that all kernels share."""
_ENGINES: list[llvm.ExecutionEngine] = []
"""Engines own the code that was loaded; they live as long as the process."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A module that is compiled, cached and loaded as one."""

    key: str
    """Names all that `make` depends on, beside the generator itself."""
    symbols: tuple[str, ...]
    """The functions to be found in it."""
    make: Callable[[], ir.Module]
    level: int = 1
    """How hard LLVM's code generator works on it, 0 to 3."""
    is_shared: bool = True
    """Whether other units call its functions."""
    keeps_blocks: bool = False
    """Whether its blocks stay as they are: the code generator's time grows with the square of a block's length."""


def is_kept(unit: Unit) -> bool:
    """Whether the cache on disk has the unit's code."""
    return disk_cache().has(_KIND, _key_of(unit))


def _key_of(unit: Unit) -> str:
    return key_of(cache_digest(), str(unit.level), unit.key)


def _object_code(unit: Unit, store: Cache, linked: Set[str], thread: int) -> bytes:
    def make() -> bytes:
        module = unit.make()
        _require_linked(unit, module, linked)
        return generate(module, unit.level, thread, keeps_blocks=unit.keeps_blocks)

    return store.fetch(_KIND, _key_of(unit), make)


def _object_codes(units: Sequence[Unit], linked: Set[str]) -> list[bytes]:
    """The units' code, made on several threads: LLVM lets Python run, which writes the next ones' text.

    The last comes first, since a kernel takes longest. The caller holds the lock for all of them.
    """
    store, waiting = disk_cache(), deque(units)
    codes: dict[str, bytes] = {}

    def following() -> Unit | None:
        try:
            return waiting.pop()
        except IndexError:  # another thread took the last
            return None

    def work(thread: int) -> None:
        for unit in iter(following, None):
            codes[unit.key] = _object_code(unit, store, linked, thread)

    ends = [beside(partial(work, thread)) for thread in range(1, min(_THREADS, len(units)))]
    try:
        work(0)
    finally:
        waiting.clear()
        for end in ends:
            end()
    return [codes[unit.key] for unit in units]


def _require_linked(unit: Unit, module: ir.Module, linked: Set[str]) -> None:
    """Refuses what the engine would link without a word, and jump to address 0 for."""
    declared = {f.name for f in module.functions if f.is_declaration and f.name.startswith(OWN_SYMBOLS)}
    missing = sorted(declared - linked)
    if missing:
        raise RuntimeError(f"{unit.key} calls {', '.join(missing)}, which no linked unit makes")


def _link(codes: Sequence[bytes]) -> llvm.ExecutionEngine:
    empty = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(empty, linking_machine())
    engine.remove_module(empty)  # else the engine would run its code generator on it
    for code in codes:
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append(engine)
    return engine


def _load(units: Sequence[Unit], codes: Sequence[bytes]) -> dict[str, int]:
    engine = _link(codes)
    addresses = {symbol: engine.get_function_address(symbol) for unit in units for symbol in unit.symbols}
    for symbol in (symbol for unit in units if unit.is_shared for symbol in unit.symbols):
        llvm.add_symbol(symbol, addresses[symbol])
        _SHARED[symbol] = addresses[symbol]
    return addresses


def load_units(units: Sequence[Unit]) -> dict[str, int]:
    """Loads units, those apart that all share and that are there already; the addresses of their functions."""
    with _LOCK:
        missing = [u for u in units if not u.is_shared or u.symbols[0] not in _SHARED]
        linked = {symbol for unit in units for symbol in unit.symbols}
        addresses = _load(missing, _object_codes(missing, linked)) if missing else {}
        shared = {symbol: _SHARED[symbol] for unit in units if unit.is_shared for symbol in unit.symbols}
        return addresses | shared
