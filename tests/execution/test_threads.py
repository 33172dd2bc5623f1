"""Profiles and threads: one of the whole process sees the launches of all, any other those of its own thread."""

import threading

import numpy as np

import triptych as tt


def launch_in_threads(count: int) -> None:
    kernel = tt.cuda.compile('extern "C" __global__ void f(int* o) { o[threadIdx.x] = 5; }', arch="sm_80")["f"]
    threads = [threading.Thread(target=lambda: kernel[2, 32](np.zeros(32, np.int32))) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_of_all_threads() -> None:
    with tt.profile(chip="a100", all_threads=True) as profile:
        launch_in_threads(5)
    assert [launch.chip.name for launch in profile.launches] == ["a100-80"] * 5


def test_of_one_thread() -> None:
    with tt.profile(chip="a100") as profile:
        launch_in_threads(2)
    assert profile.launches == []
