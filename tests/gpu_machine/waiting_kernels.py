"""Kernels that take locks, which the tests of one executor and those of both share."""

from __future__ import annotations

LOCKS = r"""
extern "C" __global__ void lock(int* lock, int* y) {
  while (atomicCAS(lock, 0, 1) != 0);
  y[0] = y[0] * 2 % 1000003 + 1; __threadfence();
  atomicExch(lock, 0);
}
extern "C" __global__ void lock_with_flag(int* lock, int* y) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      *(volatile int*)y = *(volatile int*)y * 2 % 1000003 + 1;
      __threadfence(); atomicExch(lock, 0); done = true;
    }
  }
}
"""


def after_locks(threads: int) -> tuple[int, int]:
    """The lock and `y[0]`, both 0 before, when so many threads have each taken the lock once."""
    expected = 0
    for _ in range(threads):
        expected = (expected * 2) % 1000003 + 1
    return 0, expected
