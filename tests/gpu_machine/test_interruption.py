"""Long launches: progress is told, Ctrl-C ends them within a second, the process lives on."""

import contextlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import triptych as tt
from triptych.core.progress import listening
from triptych.gpu.run import workers
from triptych.gpu.run.worker import Worker

SPIN = """
import faulthandler
faulthandler.dump_traceback_later(120, exit=True)  # says where each thread is, and ends the process
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
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stdout.readline()]
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        lines.append(process.stdout.readline())
        took = time.monotonic() - start
        # `communicate` reads the descriptor and would lose what `readline` has buffered beyond its line.
        rest, errors = process.stdout.read(), process.stderr.read()
    assert (lines, rest, process.returncode) == (["compiled\n", "interrupted\n"], "alive\n", 0), errors
    # A second is the promise; the machine that runs the tests may be busy.
    assert took < 5


ADD = """extern "C" __global__ void add(volatile float* a, int n) {
    for (int i = 0; i < n; i++) a[threadIdx.x] += 1; }"""


def _unchanged(array: NDArray[np.float32]) -> bool:
    before = array.copy()
    time.sleep(0.02)
    return np.array_equal(before, array)


@pytest.mark.parametrize("started", [1, 2, 4])
def test_an_interruption_while_workers_start_ends_them(monkeypatch: pytest.MonkeyPatch, started: int) -> None:
    kernel = tt.cuda.compile(ADD, arch="sm_80")["add"]
    count = 0

    def start(work: Callable[[Worker], object], given: tuple[Worker]) -> int:
        nonlocal count
        thread = start_new_thread(work, given)
        count += 1
        if count == started:
            raise KeyboardInterrupt
        return thread

    monkeypatch.setattr(workers, "start_new_thread", start)
    array = np.zeros(32, np.float32)
    with pytest.raises(KeyboardInterrupt), tt.scope(workers=4, budget=1 << 62):
        kernel[8, 32](array, 1 << 30)
    assert _unchanged(array)


def test_an_interruption_anywhere_in_a_launch_is_raised_and_leaves_nothing_behind(
    interrupted_at: Callable[[int, Callable[[], object]], bool],
) -> None:
    kernel = tt.cuda.compile(ADD, arch="sm_80")["add"]
    expected = np.full(32, 3, np.float32)

    def launch(array: NDArray[np.float32]) -> None:
        with tt.scope(workers=2):
            kernel[2, 32](array, 3)

    launch(np.zeros(32, np.float32))
    place, step = 1, 13
    while interrupted_at(place, lambda: launch(np.zeros(32, np.float32))):
        array = np.zeros(32, np.float32)
        # A lock that the interrupted launch still holds would stop another thread.
        thread = threading.Thread(target=kernel[1, 32], args=(array, 3), daemon=True)
        thread.start()
        thread.join(60)
        assert np.array_equal(array, expected), place
        place += step
    assert place > 100 * step // 2


def test_signal_after_signal_does_not_leave_workers_behind() -> None:
    kernel = tt.cuda.compile(ADD, arch="sm_80")["add"]
    kernel[1, 32](np.zeros(32, np.float32), 1)
    left = 0

    def interrupt(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            signal.setitimer(signal.ITIMER_REAL, 0)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for delay in (0.0005, 0.001, 0.002, 0.004, 0.008):
            left, array = 3, np.zeros(32, np.float32)
            with contextlib.suppress(KeyboardInterrupt):
                try:
                    with tt.scope(workers=4, budget=1 << 62):
                        signal.setitimer(signal.ITIMER_REAL, delay, 0.0005)
                        kernel[8, 32](array, 1 << 30)
                finally:
                    while left > 0:  # those that came late are taken here
                        with contextlib.suppress(KeyboardInterrupt):
                            time.sleep(0.01)
            assert _unchanged(array)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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
