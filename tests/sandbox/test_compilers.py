"""Compilers inside of the sandbox: they work, and can neither tell what lies outside nor take more than allowed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sandboxes import HERE, own_private_file, replied

from triptych.sandbox import End, Limits, Sandbox

LIMITS = Limits(wall_s=60, cpu_s=60, memory_bytes=1 << 30)
TWICE = 'extern "C" __global__ void twice(float *x) { x[blockIdx.x * 32 + threadIdx.x] *= 2; }'
MACROS = "\n".join(f"#define M{n + 1} M{n} M{n}" for n in range(40))


@pytest.fixture(scope="module")
def shared() -> Iterator[Sandbox]:
    with Sandbox(import_from=(HERE,), preload=("compiling", "triptych.gpu.launch"), limits=LIMITS) as sandbox:
        assert sandbox.layers
        yield sandbox


def test_nvrtc(sandbox: Sandbox) -> None:
    assert b".visible .entry twice(" in replied(sandbox.run("compiling:cuda", TWICE.encode()))


def test_a_kernel_is_compiled_and_launched(sandbox: Sandbox) -> None:
    x = np.frombuffer(replied(sandbox.run("compiling:launch", TWICE.encode())), dtype=np.float32)
    np.testing.assert_array_equal(x, 2 * np.arange(64))


def test_ptxas(sandbox: Sandbox) -> None:
    source = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"
    status, said, size = json.loads(replied(sandbox.run("compiling:ptxas", source.encode())))
    assert (status, size > 500) == (0, True), said
    assert "Compiling entry function 'k' for 'sm_90'" in said


def test_triton(sandbox: Sandbox) -> None:
    x = np.frombuffer(replied(sandbox.run("compiling:triton_launch", b"")), dtype=np.float32)
    np.testing.assert_array_equal(x, 2 * np.arange(128))


def test_a_compiler_shows_no_private_file(sandbox: Sandbox, tmp_path: Path) -> None:
    private = own_private_file(tmp_path)
    said = replied(sandbox.run("compiling:cuda", f'#include "{private}"\n{TWICE}'.encode()))
    assert said.startswith(b"refused: ")
    assert str(private).encode() in said
    assert b"secret" not in said


@pytest.mark.parametrize(
    "source",
    [f"#define M0 1 +\n{MACROS}\nint x = M40 1;", f'#include "/dev/zero"\n{TWICE}'],
    ids=["macros that double", "an endless file"],
)
def test_a_compiler_without_end(sandbox: Sandbox, source: str) -> None:
    limits = replace(LIMITS, wall_s=20, cpu_s=0.5, memory_bytes=256 << 20)
    outcome = sandbox.run("compiling:cuda", source.encode(), limits=limits)
    assert outcome.reply is None or outcome.reply.startswith(b"refused: ")
    assert outcome.end in (End.REPLIED, End.TIMED_OUT, End.OUT_OF_MEMORY, End.KILLED)
    assert outcome.cpu_s < 5
