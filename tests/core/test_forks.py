"""Locks over fork: a child finds them free, and no thread is inside a library when a process forks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

from triptych.core.forks import LazyProperty, StateLock, library_lock


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


def _is_free(lock: StateLock) -> bool:
    """Whether another thread gets it."""
    taken = threading.Event()

    def take() -> None:
        with lock:
            taken.set()

    threading.Thread(target=take, daemon=True).start()
    return taken.wait(5)


def test_an_interruption_leaves_a_lock_free_wherever_it_comes(
    interrupted_at: Callable[[int, Callable[[], object]], bool],
) -> None:
    """Handlers run when a function of Python begins and when one of C has returned: at each of these in turn."""
    lock = StateLock()

    def take() -> int:
        with lock:
            return len("held")

    place = 1
    while interrupted_at(place, take):
        assert _is_free(lock), place
        place += 1
    assert place > 3, "the function, its body's call, and what makes the lock"


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


class _Computed:
    """Something that one thread computes while another one asks."""

    def __init__(self) -> None:
        self.entered, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        self.count = 0

    @LazyProperty
    def value(self) -> int:
        """How often it was computed before."""
        self.count += 1
        count = self.count
        self.entered.set()
        self.go_on.wait()
        return count


def test_a_property_is_computed_once_and_never_waits_for_another_thread() -> None:
    one, other = _Computed(), _Computed()
    assert (one.value, one.value, one.count) == (1, 1, 1)
    assert _Computed.value.__doc__ == "How often it was computed before."
    other.go_on.clear()
    thread = threading.Thread(target=lambda: other.value)
    thread.start()
    other.entered.wait()
    assert _Computed().value == 1  # the lock of `functools.cached_property` would be held
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        other.go_on = threading.Event()
        other.go_on.set()
        os._exit(other.value)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    other.go_on.set()
    thread.join()
    assert other.value == 1


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
