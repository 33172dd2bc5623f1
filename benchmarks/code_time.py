"""How long it takes to make a kernel's code from its PTX, an instruction: cache empty, helpers for memory apart."""

from __future__ import annotations

import os
import re
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import triptych as tt
from harness import FOLDER, BenchmarkError, Figure, Peer, at_most, probe
from launches import TARGET
from launches import kernel as own_kernel
from triptych.core.gpu_targets import target_of_ptx
from triptych.gpu.run.kernel import kernel_of
from triptych.languages.triton.internals import assembler
from triptych.native.engine import load_units

MEDIAN_TARGET = 1.5e-3
"""CPU seconds of an instruction. Of kernels of few instructions and many branches it may be more."""
PACKAGE = FOLDER.parent / "src" / "triptych"
RECORDED = FOLDER.parent / "tests" / "data" / "ptx"
SOURCES: Mapping[str, str] = {
    "kernels/cuda/softmax.cu": "softmax<float>",
    "kernels/cuda/layer_norm.cu": "layer_norm<float>",
    "kernels/cuda/cross_entropy.cu": "cross_entropy<float>",
    "kernels/cuda/cumsum.cu": "cumsum<float>",
    "kernels/cuda/rope.cu": "rope<__half>",
    "kernels/cuda/transpose.cu": "transpose<float>",
    "kernels/cuda/matmul_simple.cu": "matmul_tiled<float, float>",
    "demo/kernels/gelu_linear.cu": "gelu_linear",
}
"""Our kernels in CUDA, one of a file."""
QUICK = 2
"""Kernels that are taken with --quick."""
_VERSION = re.compile(r"^\.version .*", re.MULTILINE)


def measure(quick: bool) -> Iterator[Figure]:
    """Each kernel in a process of its own, `ptxas` beside it; the least of several rounds."""
    kernels = _kernels()
    names = list(kernels)[:QUICK] if quick else list(kernels)
    ours: dict[str, list[float]] = {name: [] for name in names}
    front: dict[str, list[float]] = {name: [] for name in names}
    peers: dict[str, list[float]] = {name: [] for name in names}
    counts: dict[str, float] = {}
    for _ in range(1 if quick else 3):
        for name in names:
            text, entry = kernels[name]
            with tempfile.TemporaryDirectory() as folder:
                found = probe("code_time", "make_code", {"TRIPTYCH_CACHE": folder}, text=text, entry=entry)
            count = counts[name] = found["instructions"][0]
            ours[name].append(found["seconds"][0] / count)
            front[name].append(found["front"][0] / count)
            peers[name].append(_assemble(text, entry) / count)
    least = {name: min(samples) for name, samples in ours.items()}
    peer = Peer("ptxas on the same kernels", statistics.median(min(samples) for samples in peers.values()))
    samples = list(least.values())
    what = f"CPU time of a PTX instruction, {len(names)} kernels"
    bound, median = at_most(MEDIAN_TARGET), statistics.median(samples)
    yield Figure(f"{what}: the median", median, "s", peer, bound, samples, details=dict(least))
    together = sum(least[name] * count for name, count in counts.items()) / sum(counts.values())
    yield Figure(f"{what}: of all their instructions", together, "s", target=bound)
    worst = max(least, key=lambda name: least[name])
    yield Figure(f"{what}: the slowest", least[worst], "s", samples=ours[worst], details={"kernel": worst})
    before = [min(taken) for taken in front.values()]
    yield Figure(f"{what}: of the median, before LLVM", statistics.median(before), "s", samples=before)


def _kernels() -> dict[str, tuple[str, str]]:
    """By name: PTX text and the entry."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(RECORDED.glob(f"*.{TARGET[3:]}.ptx")):
        text = path.read_text(encoding="utf-8")
        found[path.name] = text, tt.ptx.compile(text).names[0]
    for file, name in SOURCES.items():
        names = (name,) if "<" in name else ()
        kernel = tt.cuda.compile(PACKAGE / file, arch=TARGET, names=names)[name]
        found[file] = kernel.program.text, kernel.entry.name
    return found


def make_code(text: str, entry: str) -> dict[str, list[float]]:
    """CPU seconds of a kernel's converged form, and those before LLVM; another kernel has run before."""
    warm = own_kernel("warm_up.cu", "warm_up").program.text
    kernel_of(warm, "warm_up", warps_in_rows=True).code("converged")
    start = time.process_time()
    kernel = kernel_of(text, entry, warps_in_rows=True)
    analysis = kernel.analysis
    front = time.process_time() - start
    load_units(kernel.linked)
    start = time.process_time()
    kernel.code("converged")
    seconds = front + time.process_time() - start
    count = sum(not bound.instruction.added for block in analysis.bound for bound in block)
    return {"seconds": [seconds], "front": [front], "instructions": [float(count)]}


def _assemble(ptx: str, entry: str) -> float:
    """CPU seconds of `ptxas` for the entry."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(_VERSION.sub(".version 8.0", ptx), encoding="utf-8")  # NVRTC may be newer than the assembler
        command = [assembler(int(TARGET[3:])), f"--gpu-name={target_of_ptx(ptx)}", f"--entry={entry}", str(source)]
        before = _children_s()
        done = subprocess.run([*command, "-o", os.fspath(Path(folder, "kernel"))], capture_output=True, check=False)
        if done.returncode:
            raise BenchmarkError(f"ptxas refused {entry}: {done.stderr.decode(errors='replace').strip()[-500:]}")
        return _children_s() - before


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
