"""Writes the PTX files of this folder from the sources beside them (NVRTC and Triton wheels; no GPU needed)."""

# pyright: basic

from __future__ import annotations

import ctypes
from pathlib import Path

import nvidia.cu13 as cuda_toolkit
import triton
import triton_kernels as kernels
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

FOLDER = Path(__file__).parent
TOOLKIT = Path(next(iter(cuda_toolkit.__path__)))
ASSERT = rb"""
extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, unsigned long);
#define assert(condition) ((condition) ? (void)0 : __assertfail(#condition, __FILE__, __LINE__, "", 1))
"""
CAPABILITIES = (80, 90)
POINTERS = dict.fromkeys(("x", "y", "out", "weight", "bias"), "*fp32") | dict.fromkeys(("a", "b", "c"), "*fp16")
SCALARS = {"epsilon": "fp32", "p": "fp32"}
BLOCKS = {"add": 256, "softmax": 512, "layer_norm": 256, "dropout": 256, "matmul": 32}


def compile_cuda(path: Path, capability: int) -> str:
    """The PTX of one CUDA C++ file."""
    library = ctypes.CDLL(str(TOOLKIT / "lib" / "libnvrtc.so.13"))
    program = ctypes.c_void_p()
    source = path.read_bytes()
    headers = (ctypes.c_char_p * 1)(ASSERT)
    names = (ctypes.c_char_p * 1)(b"assert.h")
    library.nvrtcCreateProgram(ctypes.byref(program), source, f"/kernels/{path.name}".encode(), 1, headers, names)
    include = TOOLKIT / "include"
    options = [f"-arch=compute_{capability}", "-lineinfo", f"-I{include}", f"-I{include / 'cccl'}"]
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    if failed:
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.value.decode())
    library.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    library.nvrtcGetPTX(program, text)
    return text.value.decode().replace(str(TOOLKIT), "/cuda")


def compile_triton(name: str, capability: int) -> str:
    """The PTX of one Triton kernel."""
    kernel = getattr(kernels, name)
    signature = {n: "constexpr" if n == "BLOCK" else POINTERS.get(n) or SCALARS.get(n, "i32") for n in kernel.arg_names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(kernel.arg_names) if n in POINTERS}
    source = ASTSource(kernel, signature, constexprs={"BLOCK": BLOCKS[name]}, attrs=aligned)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32)).asm["ptx"]


def main() -> None:
    """Write every file."""
    for capability in CAPABILITIES:
        for path in sorted(FOLDER.glob("*.cu")):
            (FOLDER / f"{path.stem}.{capability}.ptx").write_text(compile_cuda(path, capability))
        for name in BLOCKS:
            text = compile_triton(name, capability).replace(str(FOLDER), "/kernels")
            text = text.replace(str(Path(triton.__file__).parent), "/triton")
            (FOLDER / f"triton_{name}.{capability}.ptx").write_text(text)


if __name__ == "__main__":
    main()
