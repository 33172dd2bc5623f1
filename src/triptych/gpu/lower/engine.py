"""LLVM: modules to object code, object code to functions. Object code is kept in the cache on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm
from llvmlite import ir

from triptych.core.cache import Cache, key_of
from triptych.core.cache import cache as disk_cache
from triptych.core.forks import library_lock
from triptych.gpu.lower.generator import generator_digest, processor

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
    level: int = 2
    """How hard LLVM works on it, 1 to 3."""
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


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine, level: int) -> None:
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = False
    tuning.slp_vectorization = False
    tuning.loop_unrolling = False
    tuning.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)


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
    _optimise(parsed, machine, level)
    return machine.emit_object(parsed)


def _object_code(unit: Unit, store: Cache) -> bytes:
    key = key_of(generator_digest(), str(unit.level), unit.key)
    return store.fetch("object", key, lambda: compile_module(unit.make(), level=unit.level))


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
        engine = _link([_object_code(unit, store) for unit in missing])
        addresses: dict[str, int] = {}
        for unit in missing:
            for symbol in unit.symbols:
                address = addresses[symbol] = engine.get_function_address(symbol)
                if unit.is_shared:
                    llvm.add_symbol(symbol, address)
                    _SHARED[symbol] = address
        shared = {symbol: _SHARED[symbol] for unit in units if unit.is_shared for symbol in unit.symbols}
        return addresses | shared
