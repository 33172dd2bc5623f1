"""LLVM on several threads at once: the same object code as on one."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from llvmlite import ir

from triptych.gpu.isa.spaces import GLOBAL, SHARED, Space
from triptych.gpu.lower.memory import build_admission
from triptych.gpu.lower.scheduling.barriers import build_barriers
from triptych.native.object_code import generate

THREADS, ROUNDS = 3, 1


def _admission(space: Space) -> Callable[[], ir.Module]:
    return lambda: build_admission(space)


@pytest.mark.parametrize("level", [0, 2])
def test_threads_that_work_at_once_make_what_one_makes_alone(level: int) -> None:
    makes = (_admission(GLOBAL), _admission(SHARED), build_barriers)
    alone = [generate(make(), level, 0, keeps_blocks=False) for make in makes]
    found: dict[int, list[bytes]] = {}

    def work(thread: int) -> None:
        turned = [makes[(i + thread) % len(makes)] for i in range(len(makes) * ROUNDS)]
        found[thread] = [generate(make(), level, thread, keeps_blocks=False) for make in turned]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(THREADS):
        expected = [alone[(i + number) % len(makes)] for i in range(len(makes) * ROUNDS)]
        assert found[number] == expected
