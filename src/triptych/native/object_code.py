"""LLVM's optimiser and code generator: a module to object code, on several threads at once."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
from llvmlite import ir, utils

from triptych.native.cache_digest import processor

_OBJECT = 1
"""An object file, where 0 stands for assembly text."""
_BUFFER_FUNCTIONS = ("GetBufferStart", "GetBufferSize", "DisposeMemoryBuffer")


@cache
def _target() -> llvm.Target:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


@cache
def linking_machine() -> llvm.TargetMachine:
    """For engines, which link code that is there and make none: the processor does not matter."""
    return _target().create_target_machine(jit=True)


@cache
def _target_machine(level: int, thread: int) -> llvm.TargetMachine:
    """Of one thread, since a machine keeps what it learns of the processor without a lock."""
    # LLVM would end functions with `vzeroupper` even where they promise to keep all registers (`preserve_allcc`).
    features = f"{processor().features},-vzeroupper"
    return _target().create_target_machine(cpu=processor().name, features=features, opt=level, jit=True)


def generate(module: ir.Module, level: int, thread: int, *, keeps_blocks: bool) -> bytes:
    """A module as object code, made by LLVM at a level of 0 to 3.

    `thread` numbers those that are at it at the same time: each has a context and a target machine of its own, the two
    conditions under which LLVM works on several threads (its Programmer's Manual, "Threads and LLVM").
    """
    machine = _target_machine(level, thread)
    module.triple = llvm.get_default_triple()
    module.data_layout = str(machine.target_data)
    with llvm.create_context() as context, llvm.parse_assembly(str(module), context) as parsed:
        parsed.verify()
        _optimise(parsed, machine, level, keeps_blocks=keeps_blocks)
        return _emit(parsed, machine)


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine, level: int, *, keeps_blocks: bool) -> None:
    """The passes that our code gains from.

    LLVM's own pipeline takes ten times as long for code that is no faster: what is common or constant in a kernel its
    compiler has found already, and the code generator finds what we add. At level 0, where little is hot, single
    instructions stay as they are written, or go where nothing takes what they give.
    """
    manager = llvm.create_new_module_pass_manager()
    manager.add_sroa_pass()
    if not keeps_blocks:
        manager.add_simplify_cfg_pass()
    if level:
        manager.add_instruction_combine_pass()
    else:
        manager.add_dead_code_elimination_pass()
    if not keeps_blocks:
        manager.add_simplify_cfg_pass()
    manager.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


def _emit(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> bytes:
    """What `TargetMachine.emit_object` gives, without llvmlite's lock around all of LLVM meanwhile.

    Raises:
        RuntimeError: the code generator refused the module.
    """
    library, error = _library(), ctypes.c_char_p()
    buffer = library.LLVMPY_TargetMachineEmitToMemory(machine, module, _OBJECT, ctypes.byref(error))
    if not buffer:
        raise RuntimeError((error.value or b"").decode())
    try:
        return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)


@cache
def _library() -> ctypes.CDLL:
    """llvmlite's own library: the same copy, as it is loaded already; types as llvmlite's `ffi` and `targets` say."""
    library = ctypes.CDLL(str(Path(llvm.__file__).with_name(utils.get_library_name())))
    pointer = ctypes.c_void_p
    emit = library.LLVMPY_TargetMachineEmitToMemory
    emit.argtypes = (pointer, pointer, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p))
    emit.restype = pointer
    start, size, dispose = (getattr(library, f"LLVMPY_{name}") for name in _BUFFER_FUNCTIONS)
    start.argtypes = size.argtypes = dispose.argtypes = (pointer,)
    start.restype, size.restype = pointer, ctypes.c_size_t
    return library
