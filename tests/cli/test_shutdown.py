"""Behind a script's last line: its threads, its `atexit` callbacks, and the streams that it left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command import START, script, triptych

ONE_LAUNCH = (
    "import atexit, io, os, sys, threading, time",
    "from concurrent.futures import ThreadPoolExecutor",
    "import numpy as np",
    "import triptych as tt",
    "kernel = tt.cuda.compile('extern \"C\" __global__ void one(float *p) { p[threadIdx.x] += 1; }')['one']",
    "def launch(): kernel[1, 32](np.zeros(32, np.float32))",
)
LATE = "def late(): time.sleep(0.3); launch(); print('late')"


@pytest.mark.parametrize(
    "lines",
    [
        (LATE, "threading.Thread(target=late).start()", "print('last')"),
        (LATE, "threading.Thread(target=late).start()", "print('last')", "sys.exit(3)"),
        (LATE, "def first(): threading.Thread(target=late).start()", "threading.Thread(target=first).start()"),
        (LATE, "executor = ThreadPoolExecutor(2)", "executor.submit(late)", "print('last')"),
        ("atexit.register(lambda: (launch(), print('at exit')))", "print('last')"),
        ("atexit.register(launch)", "atexit.register(print, 'first')", "@atexit.register", "def f(): 1 / 0"),
        (LATE, "atexit.register(print)", "atexit.register(late)", "atexit.unregister(print)", "raise ValueError"),
    ],
)
def test_launches_after_the_last_line(lines: tuple[str, ...], tmp_path: Path) -> None:
    path = script(tmp_path, *ONE_LAUNCH, *lines)
    ours = triptych("run", path)
    theirs = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert ours.returncode == theirs.returncode
    assert ours.stdout.startswith(theirs.stdout)
    report = ours.stdout.removeprefix(theirs.stdout)
    assert report.startswith("triptych  NVIDIA H100")
    assert "one" in report
    assert [line for line in ours.stderr.splitlines() if "Error" in line] == [
        line for line in theirs.stderr.splitlines() if "Error" in line
    ]


@pytest.mark.parametrize(
    "line",
    [
        "sys.stdout = io.StringIO(); print('swallowed')",
        "sys.stdout = open('taken.txt', 'w'); print('taken')",
        "sys.stdout.close()",
        "sys.stdout = sys.stderr = None",
        "sys.stdout.detach()",
        "sys.stdout = object()",
    ],
)
def test_the_report_goes_to_the_process_s_standard_output(line: str, tmp_path: Path) -> None:
    path = script(tmp_path, *ONE_LAUNCH, "launch()", line)
    done = triptych("run", path, cwd=tmp_path)
    # Python has a status of its own where it cannot flush what the script made of the stream.
    theirs = subprocess.run([sys.executable, path], capture_output=True, cwd=tmp_path, check=False)
    assert done.returncode == theirs.returncode, done.stderr
    assert done.stdout.startswith("triptych  NVIDIA H100")
    if (tmp_path / "taken.txt").exists():
        assert (tmp_path / "taken.txt").read_text() == "taken\n"


def test_a_wrapper_s_text_goes_before_the_report(tmp_path: Path) -> None:
    wrap = "sys.stdout = io.TextIOWrapper(sys.stdout.buffer)"
    done = triptych("run", script(tmp_path, "import io, sys", wrap, "print('mine')"))
    assert done.stdout.splitlines()[0] == "mine"
    assert "launched no kernel" in done.stdout


@pytest.mark.parametrize("command", [("run", "--json", "-", "SCRIPT"), ("run", "SCRIPT"), ("chips", "--json", "-")])
def test_a_full_standard_output(command: tuple[str, ...], tmp_path: Path) -> None:
    path = script(tmp_path, "pass")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*START, *(path if word == "SCRIPT" else word for word in command)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("triptych: cannot write ")
    assert done.stderr.endswith("No space left on device\n")


def test_a_name_cannot_steer_the_terminal(tmp_path: Path) -> None:
    done = triptych("run", "\x1b[31mnone\x9b.py")
    assert done.returncode == 2
    assert "cannot read the script '\u241b[31mnone\ufffd.py'" in done.stderr
    chip = tmp_path / "\x1b[31m.toml"
    chip.write_text("x = 1\n")
    done = triptych("chips", str(chip))
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
