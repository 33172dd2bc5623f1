"""Worker threads over a launch's blocks: the loop that runs generated code, and what that needs of Python meanwhile."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence

from triptych.core.progress import Report
from triptych.gpu.lower.records import Need
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.patience import Patience
from triptych.gpu.run.slots import add_slots
from triptych.gpu.run.worker import LaunchState, Worker, make_worker

_POLL_S = 0.05
"""How often the calling thread looks at the keyboard's interrupt and reports progress."""


def run_workers(kernel: Kernel, state: LaunchState, count: int, report: Report) -> list[Worker]:
    """Runs all blocks on `count` threads; gives the workers with their counters, whether a fault stopped them or not.

    Raises:
        KeyboardInterrupt: the user asked to stop; the launch has ended by then.
    """
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(kernel.code("converged").run)
    number = max(1, min(count, state.geometry.blocks))
    workers = [make_worker(kernel, state, number) for _ in range(number)]
    errors: list[BaseException] = []

    def work(worker: Worker) -> None:
        try:
            _work(run, kernel, state, worker, workers)
            if worker.host is not None and worker.host.error is not None:
                raise worker.host.error
        except BaseException as error:
            errors.append(error)
            state.stop_block.value = -1
        finally:
            worker.is_done = True

    threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        _wait(threads, workers, state, report)
    except BaseException:
        state.stop_block.value = -1
        for thread in threads:
            thread.join()
        raise
    if errors:
        raise errors[0]
    return workers


def _work(
    run: Callable[[int], int], kernel: Kernel, state: LaunchState, worker: Worker, workers: Sequence[Worker]
) -> None:
    """One worker's thread: generated code, and what it needs of Python meanwhile."""
    context, address = worker.context, ctypes.addressof(worker.context)
    patience: Patience | None = None
    while True:
        match run(address):
            case Need.MASKED_FORM:
                context.masked = kernel.code("masked").form
            case Need.SLOTS:
                worker.slots = add_slots(worker.slots, context.wanted, kernel, state.geometry, context)
            case Need.PATIENCE:
                patience = patience or Patience(worker, [w for w in workers if w is not worker], state)
                if not patience.lasts():
                    return
            case _:
                return


def _wait(threads: list[threading.Thread], workers: list[Worker], state: LaunchState, report: Report) -> None:
    for thread in threads:
        thread.join(0.002)
        while thread.is_alive():
            thread.join(_POLL_S)
            report(sum(worker.context.done_blocks for worker in workers), state.geometry.blocks)
