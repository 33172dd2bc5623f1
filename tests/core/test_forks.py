"""Locks over fork: a child finds them free, and no thread is inside a library when a process forks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

from triptych.core.forks import StateLock, library_lock


def _in_child(lock: StateLock | threading.RLock) -> int:  # type: ignore[valid-type]
    """How a child ended that took the lock: 0, or the alarm's signal where it hung."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        with lock:  # type: ignore[attr-defined]
            os._exit(0)
    return os.waitpid(child, 0)[1]


def test_a_child_finds_a_lock_free_that_another_thread_holds() -> None:
    lock = StateLock()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert _in_child(lock) == 0
    done.set()
    thread.join()
    with lock, lock:  # re-entrant
        pass


def test_a_fork_waits_until_no_thread_is_in_a_library() -> None:
    lock = library_lock()
    held = threading.Event()
    inside: list[bool] = []

    def hold() -> None:
        with lock:
            inside.append(True)
            held.set()
            threading.Event().wait(0.05)
            inside.clear()

    os.register_at_fork(after_in_parent=lambda: seen.append(list(inside)))
    seen: list[list[bool]] = []
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert _in_child(lock) == 0
    assert seen == [[]]
    thread.join()
    with lock:
        assert _in_child(lock) == 0  # the thread that forks may be inside itself


COMPILING = """
import faulthandler, os, signal, threading, time
import numpy as np
import triptych as tt

def go(number):
    source = 'extern "C" __global__ void k(float* a) { a[threadIdx.x] += %d; }' % number
    array = np.zeros(32, np.float32)
    tt.cuda.compile(source, arch="sm_80")["k"][1, 32](array)
    assert (array == number).all()

def compile_on():
    number = 0
    while True:
        number += 1
        go(number)
        time.sleep(0.02)  # locks are not fair: whoever waits for one needs a gap

go(0)  # all is imported: the locks of imports are Python's own
thread = threading.Thread(target=compile_on, daemon=True)
thread.start()
for turn in range(3):
    child = os.fork()
    if child == 0:
        signal.alarm(100)
        faulthandler.dump_traceback_later(90)
        go(1000 + turn)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, turn
os._exit(0)  # the thread is not waited for
"""


def test_children_compile_while_a_thread_of_their_parent_does(tmp_path: os.PathLike[str]) -> None:
    environment = {**os.environ, "TRIPTYCH_CACHE": os.fspath(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", COMPILING], env=environment, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stderr
