"""Worker threads over a launch's blocks: the loop that runs generated code, and what that needs of Python meanwhile."""

from __future__ import annotations

import ctypes
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from time import perf_counter

from triptych.core.progress import Report
from triptych.core.undisturbed import unawaited
from triptych.gpu.lower.records import Need
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.patience import Patience
from triptych.gpu.run.slots import add_slots
from triptych.gpu.run.stage import Stage
from triptych.gpu.run.worker import LaunchState, Worker

_FIRST_POLL_S, _POLL_S = 0.002, 0.05
"""How long the calling thread waits at a time; after each it looks at the keyboard's interrupt and reports progress."""
_BRIEF = 4096
"""Warp instructions that take no time worth a thread, nor one in which anybody could want to interrupt them."""
_RUN_TYPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_LOCK_BYTES = 64
"""At least those of a `pthread_rwlock_t`, which all zeros initialise (56 in glibc and musl)."""
_PTHREADS = ctypes.CDLL(None)


class _Presence:
    """Says when no worker runs any more, to a thread that signals may interrupt at any time.

    Python's own joins let a signal's handler raise before the end. Waiting for a read-write lock does not: it is one
    call of C, which signals do not cut short.
    """

    def __init__(self) -> None:
        """Nobody is here yet."""
        self._lock = ctypes.create_string_buffer(_LOCK_BYTES)

    def enter(self) -> bool:
        """A worker comes; it may not where the launch has ended already."""
        return _PTHREADS.pthread_rwlock_tryrdlock(self._lock) == 0

    def leave(self) -> None:
        """The worker goes, on the thread that it came on."""
        _PTHREADS.pthread_rwlock_unlock(self._lock)

    @property
    def end(self) -> Callable[[], int]:
        """What waits until all are gone, and lets nobody in again; to be got before signals matter."""
        return partial(_PTHREADS.pthread_rwlock_wrlock, self._lock)


def run_workers(stage: Stage, state: LaunchState, count: int, report: Report) -> list[Worker]:
    """Runs all blocks on `count` threads; gives the workers with their counters, whether a fault stopped them or not.

    The calling thread runs them itself where all that they execute is brief.

    Raises:
        KeyboardInterrupt: the user asked to stop; the launch has ended by then, however often the user asks.
    """
    kernel, geometry = stage.kernel, stage.geometry
    if kernel.facts.is_straight and kernel.facts.instructions * geometry.warps * geometry.blocks <= _BRIEF:
        run = stage.scheduler
        if run is None:
            run = stage.scheduler = _RUN_TYPE(kernel.code("converged").run)
        (worker,) = stage.workers(state, 1)
        _work(run, kernel, state, worker, ())
        return [worker]
    if kernel.is_hot:
        kernel.optimise()
    run = _RUN_TYPE(kernel.code("converged").run)
    number = max(1, min(count, geometry.blocks // geometry.cluster_size))
    workers = stage.workers(state, number)
    errors: list[BaseException] = []
    finished: SimpleQueue[Worker] = SimpleQueue()
    presence = _Presence()
    stop, end = state.stop_block, presence.end

    def work(worker: Worker) -> None:
        if not presence.enter():
            return
        try:
            _work(run, kernel, state, worker, workers)
            if worker.host is not None and worker.host.error is not None:
                raise worker.host.error
        except BaseException as error:
            errors.append(error)
            stop.value = -1
        finally:
            worker.is_done = True
            presence.leave()
            finished.put(worker)

    try:
        # Not `threading.Thread`: a signal inside its `start` leaves open whether the thread runs.
        for worker in workers:
            start_new_thread(partial(copy_context().run, work), (worker,))
        _wait(finished, workers, state, kernel, report)
    except BaseException:
        # Python looks for signals after calls, not before: nothing can come between these two lines.
        stop.value = -1
        end()
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
                worker.waits_for_code = True
                context.masked = kernel.code("masked").form
                worker.waits_for_code = False
            case Need.SLOTS:
                add_slots(worker.slots, context.wanted, kernel, state.geometry, context)
            case Need.PATIENCE:
                patience = patience or Patience(worker, [w for w in workers if w is not worker], state)
                if not patience.lasts():
                    return
            case _:
                return


def _wait(
    finished: SimpleQueue[Worker], workers: list[Worker], state: LaunchState, kernel: Kernel, report: Report
) -> None:
    """Until each worker has finished. Code that has become hot meanwhile is optimised beside them, and taken then."""
    left, pause, since = len(workers), _FIRST_POLL_S, perf_counter()
    optimising, started = allocate_lock(), False

    def optimise() -> None:
        kernel.optimise()
        optimising.release()

    while left:
        try:
            finished.get(timeout=pause)
            left -= 1
        except Empty:
            pause = _POLL_S
            report(sum(worker.context.done_blocks for worker in workers), state.geometry.blocks)
        now = perf_counter()
        if not any(worker.waits_for_code for worker in workers):
            kernel.seconds += now - since
        since = now
        if started:
            _take_code(kernel, workers)
        # Again for a form that was needed only while others were optimised.
        if left and kernel.is_hot and optimising.acquire(blocking=False):
            started = True
            unawaited(optimise)


def _take_code(kernel: Kernel, workers: Sequence[Worker]) -> None:
    """The best code that there is by now: all forms of it stop and go on at the same places, with the same records."""
    for worker in workers:
        worker.context.converged = kernel.known_code("converged")
        worker.context.masked = kernel.known_code("masked")
