"""LLVM: modules to object code, object code to functions. Object code is kept in the cache on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm
from llvmlite import ir

from triptych.core.cache import Cache, key_of
from triptych.core.cache import cache as disk_cache
from triptych.core.forks import library_lock
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


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """The passes that our code gains from.

    LLVM's own pipeline takes ten times as long for code that is no faster: what is common or constant in a kernel its
    compiler has found already, and the code generator finds what we add.
    """
    manager = llvm.create_new_module_pass_manager()
    manager.add_sroa_pass()
    manager.add_simplify_cfg_pass()
    manager.add_instruction_combine_pass()
    manager.add_simplify_cfg_pass()
    manager.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


def compile_module(module: ir.Module, *, level: int) -> bytes:
    """A module as object code."""
    with _LOCK:
        return _compile(module, level)


def _compile(module: ir.Module, level: int) -> bytes:
    """A function of its own: what it drops at its end is LLVM's too, and goes under the lock."""
    machine = _target_machine(level)
    module.triple = llvm.get_default_triple()
    module.data_layout = str(machine.target_data)
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    _optimise(parsed, machine)
    return machine.emit_object(parsed)


def _object_code(unit: Unit, store: Cache, linked: Set[str]) -> bytes:
    def make() -> bytes:
        module = unit.make()
        _require_linked(unit, module, linked)
        return compile_module(module, level=unit.level)

    return store.fetch("object", key_of(cache_digest(), str(unit.level), unit.key), make)


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


def load_units(units: Sequence[Unit]) -> dict[str, int]:
    """Loads units, those apart that all share and that are there already; the addresses of their functions."""
    with _LOCK:
        missing = [u for u in units if not u.is_shared or u.symbols[0] not in _SHARED]
        store = disk_cache()
        linked = {symbol for unit in units for symbol in unit.symbols}
        engine = _link([_object_code(unit, store, linked) for unit in missing])
        addresses: dict[str, int] = {}
        for unit in missing:
            for symbol in unit.symbols:
                address = addresses[symbol] = engine.get_function_address(symbol)
                if unit.is_shared:
                    llvm.add_symbol(symbol, address)
                    _SHARED[symbol] = address
        shared = {symbol: _SHARED[symbol] for unit in units if unit.is_shared for symbol in unit.symbols}
        return addresses | shared
