"""The page of coverage: what of `tests/data/ptx` runs, what public kernels gave, and what an H200."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from generators import hardware_programs, nki_samples, nkibench, public_kernels, public_scripts, triton_tutorials
from generators.markdown import code, table
from triptych import gpu
from triptych.core.errors import UnsupportedFeature, UnsupportedInstruction
from triptych.execution.demangle import readable
from triptych.gpu.run.kernel import Kernel

PTX = Path(__file__).resolve().parents[2] / "tests" / "data" / "ptx"

_HEAD = """\
# Coverage

## Recorded PTX

What compilers write is the measure of the instruction table. `tests/data/ptx` keeps the PTX that NVRTC and Triton wrote
for the kernels beside it. {runs} of {total} kernels have a row for every instruction and ask for nothing else that the
machine lacks; for the others stands the first thing that is missing. [The rows](reference/instructions.md).

"""


def page() -> str:
    """The page's Markdown."""
    rows = list(_kernels())
    runs = sum(row[-1] == "runs" for row in rows)
    head = _HEAD.format(runs=runs, total=len(rows))
    recorded = table(("PTX", "target", "kernel", "status"), rows)
    sections = (
        module.section()
        for module in (hardware_programs, public_kernels, public_scripts, triton_tutorials, nki_samples, nkibench)
    )
    return (head + recorded + "".join(sections)).rstrip() + "\n"


def _kernels() -> Iterator[tuple[str, str, str, str]]:
    for file in sorted(PTX.glob("*.ptx")):
        source, target = file.name.split(".")[:2]
        module = gpu.load(file.read_text(encoding="utf-8"))
        for name in module.entries:
            yield code(source), code(f"sm_{target}"), code(readable(name)), _status(module, name)


def _status(module: gpu.GpuModule, name: str) -> str:
    try:
        Kernel(module, name, warps_in_rows=True)
    except (UnsupportedInstruction, UnsupportedFeature) as error:
        return error.message.partition("\n")[0].replace("'", "`")
    return "runs"
