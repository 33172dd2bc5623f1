"""Case: the same on the command line: one message on standard error, no frame of triptych, and the status."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

START = (sys.executable, "-c", "from triptych.cli.main import main; main()")
HEAD = (
    "import numpy as np",
    "import triptych as tt",
    'source = """',
    'extern "C" __global__ void move(const float *p, float *out, int shift, int steps) {',
    "    float v = p[threadIdx.x + shift];",
    "    for (int i = 0; i != steps; i += 2) v += p[i & 7];",
    "    out[threadIdx.x] = v;",
    '}"""',
    "p, out, other = np.ones(32, np.float32), np.zeros(32, np.float32), np.arange(8)",
    "def move(shift=0, steps=0, block=32):",
    "    tt.cuda.compile(source)['move'][1, block](p, out, shift, steps)",
)


@dataclass(frozen=True, slots=True)
class Bad:
    """A script's last line, and what `triptych run OPTIONS` must say of it."""

    line: str
    status: int
    message: str
    options: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


SCRIPTS = {
    "out of bounds": Bad("move(shift=1)", 1, "MemoryFault: Invalid __global__ read of size 4 bytes in kernel move"),
    "a hang": Bad("move(steps=1)", 1, "BudgetExceeded: kernel move: warp 0", (), (("TRIPTYCH_BUDGET", "7000"),)),
    "a syntax error": Bad("tt.cuda.compile('__global__ void k() { x }\\n')", 1, 'identifier "x" is undefined'),
    "threads": Bad("move(block=1025)", 1, "LaunchError: kernel 'move': block (1025, 1, 1)"),
    "cut PTX": Bad("tt.ptx.compile(tt.cuda.compile(source).ptx[:500] + '\\n')", 1, "PtxSyntaxError: "),
    "an unknown chip": Bad("move()", 2, "triptych: unknown chip 'h10'\n  did you mean h100", ("--chip", "h10")),
    "an unknown target": Bad("move()", 2, "triptych: unknown compile target 'sm_91'", ("--target", "sm_91")),
    "no chip file": Bad("move()", 2, "triptych: cannot read the chip file", ("--chip", "./none.toml")),
    "a setting": Bad("move()", 2, "triptych: TRIPTYCH_WORKERS='many'", (), (("TRIPTYCH_WORKERS", "many"),)),
}  # fmt: skip


@pytest.mark.parametrize("bad", SCRIPTS.values(), ids=SCRIPTS)
def test_run(bad: Bad, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("\n".join((*HEAD, "print('before')", bad.line, "print('went on')")) + "\n", encoding="utf-8")
    done = subprocess.run(
        [*START, "run", *bad.options, str(script)],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=os.environ | dict(bad.environment),
    )  # fmt: skip
    assert done.returncode == bad.status, done.stderr
    assert bad.message in done.stderr
    assert "went on" not in done.stdout
    assert "src/triptych" not in done.stderr
    assert "site-packages" not in done.stderr
    if bad.status == 2:
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
    else:
        assert done.stdout.startswith("before\n")
        assert done.stderr.count("Traceback") == 1, "the script's own, as Python prints it"
        assert f'File "{script}"' in done.stderr


def test_the_script_goes_on_where_it_catches_the_error(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    lines = (
        *HEAD,
        "for shift in (1, 0):",
        "    try: move(shift)",
        "    except tt.MemoryFault as fault: print('caught', fault.where.line)",
        "print(out.sum(), p.sum(), other.sum())",
    )
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = subprocess.run([*START, "run", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, ""), "the fault is a finding, caught or not"
    assert "error memcheck in move" in done.stdout
    assert done.stdout.startswith("caught 5\n32.0 32.0 28\n")
