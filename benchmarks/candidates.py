"""Candidates for the judge, as many as wanted and each new: copies of our own kernels whose kernels have other names.

A copy is a file of its own: the text of the module of `triptych.kernels` (and of its `.cu` files), and a `solution`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import triptych.kernels
from triptych import judge
from triptych.operators import operator

_FOLDER = Path(triptych.kernels.__file__).parent
_ALIKE = "vec_add swiglu rope transpose elementwise_chain gelu_linear reduce_sum softmax rms_norm layer_norm cumsum"
_ROWS_OF_CUDA = "gelu_linear reduce_sum softmax rms_norm layer_norm cumsum cross_entropy"
_LANGUAGES = ("cuda", "triton", "nki")
_OWN_LOADING = '''
def kernel(file, name, arch=None):
    """The template's instance; the kernel has a name of its own here."""
    base, _, types = name.partition("<")
    options = ["-I", str(Path(loading.__file__).parent)]
    return cuda.compile(FILES[file], arch, options, [f"{base}_VERSION<{types}"])[f"{base}_VERSION<{types}"]
'''


@dataclass(frozen=True, slots=True)
class Kernel:
    """One of our functions of arrays."""

    operator: str
    language: str
    function: str
    module: str
    """The file that has it, without `.py`."""
    dtype: str = "f32"
    sizes: tuple[str, ...] = ()
    """Those that it takes; the operator's tests' sizes where it takes all."""
    files: tuple[str, ...] = ()
    """The `.cu` files of which it launches kernels."""

    def candidate(self, version: int) -> judge.Candidate:
        """A copy of it; those of different versions share neither source nor programs."""
        text = (_FOLDER / self.language / f"{self.module}.py").read_text(encoding="utf-8")
        text = f"{text}\n\n{self._solution}"
        text = _cuda(text, self.files, version) if self.language == "cuda" else _traced(text, version)
        return judge.Candidate(text, f"{self.function}_{self.dtype}_{version}.{self.language}.py")

    @property
    def task(self) -> judge.Task:
        """What it is judged by; the seed is drawn, as a trainer has it."""
        return judge.task(operator(self.operator), sizes=self.sizes, dtype=self.dtype)

    @property
    def _solution(self) -> str:
        known = operator(self.operator)
        inputs = ", ".join(one.name for one in known.inputs)
        given, passed = inputs, inputs
        if "causal" in known.sizes[0].values:
            given, passed = f"{inputs}, causal", f"{inputs}, causal=bool(causal)"
        return f"def solution({given}):\n    return {self.function}({passed})\n"


def _traced(text: str, version: int) -> str:
    """A module of Triton or NKI, its kernels and what they call renamed."""
    for name in re.findall(r"^@(?:triton|nki)\.jit.*\ndef (\w+)", text, re.MULTILINE):
        text = re.sub(rf"(?<![\w.]){name}\b", f"{name}_{version}", text)
    return text


def _cuda(text: str, files: tuple[str, ...], version: int) -> str:
    """A module of CUDA that compiles sources of its own."""
    sources = {name: _renamed((_FOLDER / "cuda" / name).read_text(encoding="utf-8"), version) for name in files}
    ours = "from triptych.kernels.cuda import loading\nfrom triptych.kernels.cuda.loading import AMPERE, CPP, HOPPER"
    text = re.sub(r"^from triptych\.kernels\.cuda\.loading import .*$", ours, text, count=1, flags=re.MULTILINE)
    return f"{text}\n\nfrom pathlib import Path\nfrom triptych.languages import cuda\n\nFILES = {sources!r}\n" + (
        _OWN_LOADING.replace("VERSION", str(version))
    )


def _renamed(source: str, version: int) -> str:
    return re.sub(r"(__global__ void\s+(?:__launch_bounds__\(\w+\)\s+)?\w+)\(", rf"\1_{version}(", source)


@cache
def kernels() -> tuple[Kernel, ...]:
    """From vec_add to attention, in turn in each language, the simple ones first: 50."""
    return tuple(_kernels())


def _kernels() -> Iterator[Kernel]:
    for name in (*_ALIKE.split(), "cross_entropy"):
        for language in _LANGUAGES:
            module = name if language != "cuda" else "rows" if name in _ROWS_OF_CUDA.split() else "elementwise"
            files = (f"{name}.cu",) if language == "cuda" else ()
            yield Kernel(name, language, name, module, files=files)
    simple = ("attention_simple.cu", "softmax.cu")
    yield Kernel("matmul", "cuda", "matmul_naive", "matmul", files=("matmul_simple.cu",))
    yield Kernel("matmul", "cuda", "matmul_tiled", "matmul", files=("matmul_simple.cu",))
    for unit in ("wmma", "mma", "wgmma"):
        yield Kernel("matmul", "cuda", f"matmul_{unit}", "matmul", "f16", ("tiny",), (f"matmul_{unit}.cu",))
    yield Kernel("matmul", "triton", "matmul", "matmul", "f16")
    yield Kernel("matmul", "nki", "matmul", "matmul")
    yield Kernel("attention", "cuda", "attention_naive", "attention", files=simple)
    yield Kernel("attention", "cuda", "attention_tiled", "attention", files=simple)
    for unit in ("mma", "wgmma"):
        yield Kernel("attention", "cuda", f"attention_{unit}", "attention", "f16", files=(f"attention_{unit}.cu",))
    yield Kernel("attention", "triton", "attention", "attention", "f16")
    yield Kernel("attention", "nki", "attention", "attention")
    yield Kernel("attention", "nki", "attention", "attention", "bf16")
