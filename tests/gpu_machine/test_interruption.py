"""Long launches: progress is told, Ctrl-C ends them within a second, the process lives on."""

import signal
import subprocess
import sys
import textwrap
import time

import numpy as np

import triptych as tt
from triptych.core.progress import listening

SPIN = """
import numpy as np, triptych as tt
spin = tt.cuda.compile('extern "C" __global__ void spin(volatile int* p) { while (p[0] == 0); }', arch="sm_80")["spin"]
spin[1, 1](np.ones(1, np.int32))
print("compiled", flush=True)
try:
    with tt.scope(budget=1 << 62):
        spin[4, 64](np.zeros(1, np.int32))
except KeyboardInterrupt:
    print("interrupted", flush=True)
spin[1, 1](np.ones(1, np.int32))
print("alive", flush=True)
"""


def test_ctrl_c_ends_a_launch_within_a_second() -> None:
    command = [sys.executable, "-c", textwrap.dedent(SPIN)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "compiled\n"
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        assert process.stdout.readline() == "interrupted\n"
        # A second is the promise; the machine that runs the tests may be busy.
        assert time.monotonic() - start < 5
        assert process.stdout.readline() == "alive\n"
    assert process.returncode == 0


class _Reports:
    def __init__(self) -> None:
        self.kernels: list[str] = []
        self.done: list[tuple[int, int]] = []

    def __enter__(self) -> "_Reports":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def __call__(self, done: int, total: int) -> None:
        self.done.append((done, total))


def test_progress_is_told() -> None:
    source = """extern "C" __global__ void slow(float* y) {
        float s = 0; for (int i = 0; i < 60000; i++) s = s * 0.5f + i; y[blockIdx.x] = s; }"""
    kernel = tt.cuda.compile(source, arch="sm_80")["slow"]
    reports = _Reports()

    def listener(kernel: str) -> _Reports:
        reports.kernels.append(kernel)
        return reports

    with listening(listener):
        kernel[2000, 32](np.zeros(2000, np.float32))
    assert reports.kernels == ["slow"]
    counts = [done for done, _ in reports.done]
    assert counts, "the launch runs longer than the time between two reports"
    assert counts == sorted(counts)
    assert all(total == 2000 for _, total in reports.done)
