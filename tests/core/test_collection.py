"""Work that does without the collector of cycles leaves it as it was."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from triptych.core.collection import uncollected


def test_it_is_off_inside_and_on_again() -> None:
    assert gc.isenabled()
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), uncollected():
        raise KeyError
    assert gc.isenabled()


def test_a_program_that_has_switched_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_threads_that_overlap_leave_it_on() -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with uncollected():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(10)
    with uncollected():
        leave.set()
        thread.join()
    assert gc.isenabled()


def test_a_forked_process_has_it_on() -> None:
    with uncollected():
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
        _, status = os.waitpid(child, 0)
    assert status == 0
