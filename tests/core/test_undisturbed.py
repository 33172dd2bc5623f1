"""Work that an interruption must not leave half done runs to its end, and whoever waits for it need not."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from contextvars import ContextVar

import pytest

from triptych.core.undisturbed import undisturbed

_setting: ContextVar[int] = ContextVar("setting", default=0)


def test_what_it_gives_and_raises() -> None:
    token = _setting.set(7)
    try:
        assert undisturbed(lambda: (_setting.get(), threading.current_thread() is threading.main_thread())) == (
            7,
            False,
        )
    finally:
        _setting.reset(token)
    with pytest.raises(ZeroDivisionError):
        undisturbed(lambda: 1 // 0)


def test_other_threads_do_it_themselves() -> None:
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(undisturbed(threading.current_thread) is thread))
    thread.start()
    thread.join()
    assert seen == [True]


def _interrupted() -> None:
    go_on, done = threading.Event(), threading.Event()
    main = threading.get_ident()

    def work() -> None:
        signal.pthread_kill(main, signal.SIGINT)
        go_on.wait(60)
        done.set()

    with pytest.raises(KeyboardInterrupt):
        undisturbed(work)
    assert not done.is_set()
    go_on.set()
    assert done.wait(60)


def test_an_interruption_ends_the_wait_and_not_the_work() -> None:
    """It may come as the wait begins, which it then does not end by itself: that takes many turns to happen."""
    for _ in range(500):
        _interrupted()


UNAWAITED = """
import os, time
from triptych.core.undisturbed import unawaited
def work():
    time.sleep(0.3)
    print("done", flush=True)
def fail():
    raise ValueError("nobody hears this")
unawaited(fail)
unawaited(work)
if os.fork() == 0:
    raise SystemExit  # the child has not begun anything
os.wait()
print("end", flush=True)
"""


def test_the_end_of_the_process_waits_for_what_nobody_waits_for() -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", UNAWAITED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("end\ndone\n", "")
