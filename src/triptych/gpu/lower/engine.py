"""LLVM: modules to object code, object code to functions. Object code is kept in the cache on disk."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from triptych.core.cache import cache as disk_cache
from triptych.core.cache import key_of
from triptych.gpu.lower.machine import build_shuffle
from triptych.gpu.lower.memory import (
    Access,
    Helper,
    build_copy,
    copy_name,
    fallback_name,
    needed_by,
    needed_by_copy,
    ways_of,
)
from triptych.gpu.lower.scheduler import build_scheduler

_LOCK = threading.RLock()
_LOADED: dict[str, int] = {}
_ENGINES: list[llvm.ExecutionEngine] = []
"""Engines own the code that was loaded; they live as long as the process."""


@cache
def generator_digest() -> str:
    """Names everything that object code depends on besides its input: our generator, LLVM, the processor."""
    digest = hashlib.sha256()
    for package in (
        "triptych.gpu.isa",
        "triptych.gpu.flow",
        "triptych.gpu.lower",
        "triptych.gpu.lower.memory",
        "triptych.gpu.syntax",
    ):
        for source in sorted(resources.files(package).iterdir(), key=lambda path: path.name):
            if source.name.endswith(".py"):
                digest.update(source.read_bytes())
    for text in (llvmlite.__version__, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()):
        digest.update(text.encode())
    return digest.hexdigest()


@cache
def _target_machine(level: int) -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=level, jit=True
    )


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine, level: int) -> None:
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = False
    tuning.slp_vectorization = False
    tuning.loop_unrolling = False
    tuning.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)


def compile_module(module: ir.Module, *, level: int) -> bytes:
    """A module as object code; `level` 1 to 3."""
    with _LOCK:
        machine = _target_machine(level)
        module.triple = llvm.get_default_triple()
        module.data_layout = str(machine.target_data)
        parsed = llvm.parse_assembly(str(module))
        parsed.verify()
        _optimise(parsed, machine, level)
        return machine.emit_object(parsed)


def load_object(code: bytes, symbols: Sequence[str]) -> dict[str, int]:
    """Loads object code; the addresses of some of its functions. What it calls must have been loaded before."""
    with _LOCK:
        machine = _target_machine(2)
        empty = llvm.parse_assembly(f'target triple = "{llvm.get_default_triple()}"')
        engine = llvm.create_mcjit_compiler(empty, machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _ENGINES.append(engine)
        return {symbol: engine.get_function_address(symbol) for symbol in symbols}


def build_cached(key: str, make: Callable[[], ir.Module], *, level: int) -> bytes:
    """The object code of a module, from the cache if it is there; `key` names all that `make` depends on."""
    name = key_of(generator_digest(), str(level), key)
    return disk_cache().fetch("object", name, lambda: compile_module(make(), level=level))


def _require(name: str, make: Callable[[], ir.Module], *symbols: str) -> None:
    if name in _LOADED:
        return
    code = build_cached(name, make, level=2)
    for symbol, address in load_object(code, symbols or (name,)).items():
        llvm.add_symbol(symbol, address)
        _LOADED[symbol] = address
    _LOADED.setdefault(name, 0)


def require_scheduler() -> int:
    """Loads the scheduler; the address of `triptych.run`."""
    with _LOCK:
        symbols = ("triptych.run", "triptych.fault", "triptych.resolve", "triptych.refuel")
        _require("triptych.scheduler", build_scheduler, *symbols)
        return _LOADED["triptych.run"]


def require_access(access: Access) -> None:
    """Loads a memory helper and those that it calls."""
    with _LOCK:
        require_scheduler()
        for other in needed_by(access):
            require_access(other)
        fallbacks = [fallback_name(access, way) for way in ways_of(access)]
        _require(access.name, lambda: Helper(access).module, access.name, *fallbacks)


def require_copy(size: int) -> None:
    """Loads the helper of `cp.async`."""
    with _LOCK:
        for access in needed_by_copy(size):
            require_access(access)
        _require(copy_name(size), lambda: build_copy(size))


def require_shuffle() -> None:
    """Loads the helper of `shfl`."""
    with _LOCK:
        _require("triptych.shuffle", build_shuffle)
