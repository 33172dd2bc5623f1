"""Tasks that compile, inside a sandbox, which has imported what they need."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import triton

import triptych as tt
from triptych.demo.kernels.triton_kernels import add

PTXAS = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"


def cuda(payload: bytes) -> bytes:
    """PTX of a CUDA source, or what the compiler said."""
    try:
        return tt.cuda.compile(payload.decode(), arch="sm_90").ptx.encode()
    except tt.CompileError as error:
        return f"refused: {error}".encode()


def launch(payload: bytes) -> bytes:
    """Compiles `twice` and launches it."""
    x = np.arange(64, dtype=np.float32)
    tt.cuda.compile(payload.decode(), arch="sm_90")["twice"][2, 32](x)
    return x.tobytes()


def ptxas(payload: bytes) -> bytes:
    """What Triton's assembler, a program of its own, says of PTX, and the size of what it makes."""
    Path("kernel.ptx").write_bytes(payload)
    command = [str(PTXAS), "-v", "-arch=sm_90", "kernel.ptx", "-o", "kernel.cubin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    size = Path("kernel.cubin").stat().st_size if done.returncode == 0 else 0
    return json.dumps([done.returncode, done.stderr, size]).encode()


def triton_launch(_: bytes) -> bytes:
    tt.triton.activate()
    x = np.arange(128, dtype=np.float32)
    return np.asarray(add(x, x)).tobytes()
