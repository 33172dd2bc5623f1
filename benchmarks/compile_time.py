"""How long a kernel's first launch waits for its code: made anew, and from the cache on disk; NVRTC apart."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np

import triptych as tt
from harness import KERNELS, BenchmarkError, Figure, Peer, at_most, probe, require_close, spread, time_call
from launches import TARGET, kernel
from triptych import gpu
from triptych.gpu.syntax.ast import Instruction
from triptych.languages.launcher import BoundKernel
from triptych.languages.triton.internals import assembler

INSTRUCTIONS = range(105, 116)
COLD_TARGET = 0.5
CACHED_TARGET = 0.02
TILE = 16
_STATES = (
    (("made, helpers there", "cached, helpers there"), True, "hot"),
    (("made, cache empty", "cached, new process"), False, "hot"),
    (("optimised, cache empty",), False, "always"),
)
"""States of one folder of the cache, one after the other; whether another kernel runs before; `TRIPTYCH_OPTIMISE`."""
_VERSION = re.compile(r"^\.version .*", re.MULTILINE)


def measure(quick: bool) -> Iterator[Figure]:
    """Best of several processes for each state of the cache."""
    product = kernel("product.cu", "product").program.text
    count = count_instructions(product, "product")
    if count not in INSTRUCTIONS:
        raise BenchmarkError(f"product.cu has become {count} PTX instructions; the targets speak of about 110")
    rounds = 1 if quick else 5
    texts = {"product": product, "warm_up": kernel("warm_up.cu", "warm_up").program.text}
    seconds = _take(texts, rounds)
    what = f"{count} PTX instructions"
    peer = Peer("ptxas on the same PTX", min(_assemble(product) for _ in range(rounds)))
    rows = (
        ("code made anew, cache empty", "made, cache empty", at_most(COLD_TARGET), peer),
        ("the same, optimised before the first launch", "optimised, cache empty", None, peer),
        ("code made anew, memory helpers there", "made, helpers there", None, peer),
        ("from the cache, in a new process", "cached, new process", at_most(CACHED_TARGET), None),
        ("from the cache, after another kernel", "cached, helpers there", None, None),
    )
    for label, state, target, beside in rows:
        samples = seconds[state]
        yield Figure(f"{what}: {label}", min(samples), "s", beside, target, samples, details=spread(samples))
    yield from _nvrtc(rounds)


def count_instructions(ptx: str, entry: str) -> int:
    """PTX instructions of an entry, as our parser reads them."""
    body = gpu.load(ptx).module.functions[entry].body or ()
    return sum(isinstance(statement, Instruction) for statement in body)


def _take(texts: dict[str, str], rounds: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {state: [] for states, *_ in _STATES for state in states}
    for _ in range(rounds):
        for states, warm_up, optimise in _STATES:
            with tempfile.TemporaryDirectory() as folder:
                for state in states:
                    settings = {"TRIPTYCH_CACHE": folder, "TRIPTYCH_OPTIMISE": optimise}
                    found = probe(
                        "compile_time", "first_launch", settings,
                        product=texts["product"], warm_up=texts["warm_up"] if warm_up else "",
                    )  # fmt: skip
                    require_close("product", found["error"][0], 1e-4)
                    seconds[state] += found["seconds"]
    return seconds


def first_launch(product: str, warm_up: str) -> dict[str, list[float]]:
    """Seconds from PTX text to the end of the first launch, a second launch's time taken off.

    Where there is a text `warm_up`, its kernel runs before the clock starts.
    """
    compile_ptx, _ = tt.ptx.compile, gpu.run_launch  # imported before the clock starts
    import_module("triptych.chips.reading")
    a, b, c = (np.ones((TILE, TILE), np.float32) for _ in range(3))
    if warm_up:
        compile_ptx(warm_up)["warm_up"][1, 32](a, b)
    found: list[BoundKernel] = []

    def to_first_launch() -> None:
        found.append(compile_ptx(product)["product"][1, (TILE, TILE)])
        found[0](a, b, c, TILE, TILE, TILE)

    seconds = time_call(to_first_launch)
    warm = min(time_call(lambda: found[0](a, b, c, TILE, TILE, TILE)) for _ in range(5))
    return {"seconds": [seconds - warm], "error": [float(np.abs(c - a @ b).max())]}


def _assemble(ptx: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(_VERSION.sub(".version 8.0", ptx))  # NVRTC may be newer than Triton's ptxas
        command = [assembler(int(TARGET[3:])), f"--gpu-name={TARGET}", str(source), "-o", f"{folder}/kernel"]
        return time_call(lambda: subprocess.run(command, check=True, capture_output=True))


def _nvrtc(rounds: int) -> Iterator[Figure]:
    first: list[float] = []
    again: list[float] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            found = probe("compile_time", "compile_source", {"TRIPTYCH_CACHE": folder})["seconds"]
        first.append(found[0])
        again += found[1:]
    yield Figure("CUDA C++ to PTX by NVRTC, first of a process", min(first), "s", samples=first)
    yield Figure("CUDA C++ to PTX by NVRTC, later ones", min(again), "s", samples=again)


def compile_source() -> dict[str, list[float]]:
    """Seconds of compiling product.cu, the cache being empty; with another option each time, so that all are made."""
    source = (KERNELS / "product.cu").read_text()
    compile_cuda = tt.cuda.compile
    return {
        "seconds": [
            time_call(lambda turn=turn: compile_cuda(source, arch=TARGET, options=[f"-DTURN={turn}"]))
            for turn in range(4)
        ]
    }
