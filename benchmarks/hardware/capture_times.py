"""Captures and assembles the programs whose times a GPU is asked for: needs ptxas and triptych, no GPU.

python benchmarks/hardware/capture_times.py BUNDLE.npz PTXAS [PTXAS …]

The bundle is for `record_times.py`; the plans in it are those that `count_times.py` counts. The chip is
the H200, with its own target; each program is assembled with ptxas's own options, by the first ptxas that takes it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "tests" / "hardware")]

from device import DriverError
from recording import printed_by, store
from time_cases import Case, cases
from time_inputs import digest_of

from triptych.chips import load
from triptych.core.dtypes import dtype_of
from triptych.core.plan import Plan
from triptych.core.serialise import pack, unpack
from triptych.execution.capture import recording
from triptych.execution.profile import Selection, select

CHIP = "h200"
_OF_DEVICE = "sm_90a"
_HELPERS = """.version 8.0
.target sm_90
.address_size 64
.visible .entry empty() { ret; }
.visible .entry read(.param .u64 from, .param .u64 to, .param .u64 packs, .param .u32 rounds)
{
    .reg .pred %p<3>;
    .reg .b32 %r<14>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [from];
    ld.param.u64 %d2, [to];
    ld.param.u64 %d3, [packs];
    ld.param.u32 %r1, [rounds];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    mov.u32 %r6, %nctaid.x;
    mul.lo.u32 %r7, %r6, %r3;
    cvt.u64.u32 %d5, %r7;
    mov.u32 %r8, 0;
ROUND:
    cvt.u64.u32 %d4, %r5;
PACK:
    shl.b64 %d6, %d4, 4;
    add.u64 %d7, %d1, %d6;
    ld.volatile.global.v4.u32 {%r9, %r10, %r11, %r12}, [%d7];
    or.b32 %r9, %r9, %r10;
    or.b32 %r11, %r11, %r12;
    or.b32 %r9, %r9, %r11;
    or.b32 %r8, %r8, %r9;
    add.u64 %d4, %d4, %d5;
    setp.lt.u64 %p1, %d4, %d3;
    @%p1 bra PACK;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra ROUND;
    setp.eq.u32 %p1, %r8, 0x12345678;
    @%p1 st.global.u32 [%d2], %r8;
    ret;
}
"""
"""Nothing; and the reading of packs of 16 bytes, again and again: of zeros, so that nothing is stored."""


def capture(case: Case) -> Plan:
    """What the case's function launches."""
    with recording() as made:
        inputs = [made.new_input(one.name, dtype_of(one.dtype), one.shape) for one in case.inputs]
        result = case.function(*inputs, **case.options)
        several = cast("tuple[object, ...]", result if isinstance(result, tuple) else (result,))
        outputs = list(map(made.memory.bind, several))
        return made.plan(outputs, [f"output{place}" for place in range(len(outputs))])


def plans(found: Sequence[Case]) -> Iterator[Plan]:
    """Those of all cases, on the H200."""
    before = select(Selection(load(CHIP)))
    try:
        yield from map(capture, found)
    finally:
        select(before)


def assemble(text: str, assemblers: Sequence[str]) -> bytes:
    """The cubin by the first assembler that takes the text, which may name a newer version of PTX than it needs.

    Raises:
        DriverError: with the last one's message.
    """
    said = ""
    for assembler in assemblers:
        version = _newest_version(printed_by(assembler, "--version"))
        with tempfile.TemporaryDirectory() as folder:
            source, cubin = Path(folder, "program.ptx"), Path(folder, "program.cubin")
            source.write_text(re.sub(r"^\.version 9\.\d+", f".version {version}", text, count=1, flags=re.MULTILINE))
            command = [assembler, f"-arch={_OF_DEVICE}", str(source), "-o", str(cubin)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if not done.returncode:
                return cubin.read_bytes()
            said = (done.stderr or done.stdout).replace(folder, "").strip()
    raise DriverError(said)


def _newest_version(told: str) -> str:
    """The newest version of PTX that a ptxas takes, from 12.7 on: 8.8 of 12.9, 9.0 of 13.0."""
    found = re.search(r"release (\d+)\.(\d+)", told)
    assert found, told
    major, minor = int(found[1]), int(found[2])
    return f"8.{minor - 1}" if major == 12 else f"{major - 4}.{minor}"


def read_plans(bundle: Path) -> Mapping[str, Plan]:
    """The plans of a bundle by their cases' names."""
    data = np.load(bundle)
    return {name[5:]: unpack(data[name].tobytes()) for name in data.files if name.startswith("plan:")}


def main(bundle: Path, assemblers: Sequence[str]) -> None:
    """Captures, assembles, writes."""
    found = cases()
    arrays: dict[str, NDArray[Any]] = {"cubin:helpers": np.frombuffer(assemble(_HELPERS, assemblers), np.uint8)}
    for case, plan in zip(found, plans(found), strict=True):
        for program in plan.programs.values():
            name = f"cubin:{digest_of(program.text)}"
            if name not in arrays:
                arrays[name] = np.frombuffer(assemble(program.text, assemblers), np.uint8)
        arrays[f"plan:{case.name}"] = np.frombuffer(pack(plan), np.uint8)
    told = [printed_by(one, "--version").strip().splitlines()[-1] for one in assemblers]
    store(bundle, arrays, cases=[asdict(case) | {"name": case.name} for case in found], assemblers=told)
    print(f"{len(found)} cases, {len(arrays) - len(found)} programs")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
