"""LLVM: modules to object code, object code to functions. Object code is kept in the cache on disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm
from llvmlite import ir

from triptych.core.cache import Cache, key_of
from triptych.core.cache import cache as disk_cache
from triptych.core.forks import library_lock
from triptych.core.undisturbed import beside
from triptych.gpu.lower.cache_digest import cache_digest, processor

OWN_SYMBOLS = "triptych."
"""How the functions are called that units make for each other; the rest are LLVM's and the C library's."""
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


@cache
def _target() -> llvm.Target:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


@cache
def _linking_machine() -> llvm.TargetMachine:
    """For engines, which link code that is there and make none: the processor does not matter."""
    return _target().create_target_machine(jit=True)


@cache
def _target_machine(level: int) -> llvm.TargetMachine:
    # LLVM would end functions with `vzeroupper` even where they promise to keep all registers (`preserve_allcc`).
    features = f"{processor().features},-vzeroupper"
    return _target().create_target_machine(cpu=processor().name, features=features, opt=level, jit=True)


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine, level: int, *, keeps_blocks: bool) -> None:
    """The passes that our code gains from.

    LLVM's own pipeline takes ten times as long for code that is no faster: what is common or constant in a kernel its
    compiler has found already, and the code generator finds what we add. At level 0, where nothing is hot, single
    instructions stay as they are written.
    """
    manager = llvm.create_new_module_pass_manager()
    manager.add_sroa_pass()
    if not keeps_blocks:
        manager.add_simplify_cfg_pass()
    if level:
        manager.add_instruction_combine_pass()
    if not keeps_blocks:
        manager.add_simplify_cfg_pass()
    manager.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


def _compile(module: ir.Module, level: int, *, keeps_blocks: bool) -> bytes:
    """A module as object code. The caller holds the lock, under which all that is dropped here goes too."""
    machine = _target_machine(level)
    module.triple = llvm.get_default_triple()
    module.data_layout = str(machine.target_data)
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    _optimise(parsed, machine, level, keeps_blocks=keeps_blocks)
    return machine.emit_object(parsed)


def _object_code(unit: Unit, store: Cache, linked: Set[str]) -> bytes:
    def make() -> bytes:
        module = unit.make()
        _require_linked(unit, module, linked)
        return _compile(module, unit.level, keeps_blocks=unit.keeps_blocks)

    return store.fetch("object", key_of(cache_digest(), str(unit.level), unit.key), make)


def _object_codes(units: Sequence[Unit], linked: Set[str]) -> list[bytes]:
    """The units' code; while LLVM works on one, which lets Python run, another thread writes the next one.

    More threads would not help, as llvmlite has one lock around all of LLVM. The caller holds ours for both.
    """
    store, waiting = disk_cache(), deque(units)
    codes: dict[str, bytes] = {}

    def following() -> Unit | None:
        try:
            return waiting.popleft()
        except IndexError:  # the other thread took the last
            return None

    def work() -> None:
        for unit in iter(following, None):
            codes[unit.key] = _object_code(unit, store, linked)

    end = beside(work) if len(units) > 1 else None
    try:
        work()
    finally:
        waiting.clear()
        if end is not None:
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
    engine = llvm.create_mcjit_compiler(empty, _linking_machine())
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
