"""Compiled kernels on disk: several processes at once, and entries that were damaged."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import numpy as np, triptych as tt
source = 'extern "C" __global__ void f(int* y) { y[threadIdx.x] = threadIdx.x * 3; }'
kernel = tt.cuda.compile(source, arch="sm_80")["f"]
y = np.zeros(40, np.int32)
kernel[1, 40](y)
assert (y == np.arange(40) * 3).all()
print("right")
"""


def start(folder: Path) -> "subprocess.Popen[str]":
    environment = os.environ | {"TRIPTYCH_CACHE": str(folder)}
    return subprocess.Popen([sys.executable, "-c", RUN], stdout=subprocess.PIPE, text=True, env=environment)


def test_two_processes_share_the_folder(tmp_path: Path) -> None:
    processes = [start(tmp_path) for _ in range(2)]
    assert [p.communicate(timeout=120)[0] for p in processes] == ["right\n"] * 2
    assert {"object", "facts", "module"} <= {path.name for path in tmp_path.iterdir()}
    assert not list(tmp_path.glob("**/.new-*"))


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_damaged_entries_are_rebuilt(tmp_path: Path, damage: str) -> None:
    assert start(tmp_path).communicate(timeout=120)[0] == "right\n"
    entries = sorted(tmp_path.glob("*/*/*"))
    before = {path: path.read_bytes() for path in entries}
    for path, data in before.items():
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]
        path.write_bytes({"cut": data[:middle], "flipped": flipped, "empty": b""}[damage])
    assert start(tmp_path).communicate(timeout=120)[0] == "right\n"
    assert {path: path.read_bytes() for path in entries}.keys() == before.keys()
    assert all(path.read_bytes()[:17] == data[:17] for path, data in before.items())
