"""What times kernels under Triton: events, the autotuner's benchmarker and `do_bench`, all on the modelled clock.

One run is exact, since the clock is modelled: repeating it thousands of times, as on a GPU, would add nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from triptych.core.errors import UsageError
from triptych.execution.memory import memory
from triptych.execution.timing import only_timed
from triptych.languages.triton.clock import TICKS_PER_MILLISECOND, Clock


class DeviceInterface:
    """The part of `torch.cuda` that Triton's host side uses (`get_device_interface()`)."""

    def __init__(self, clock: Clock, ordinal: Callable[[], int]) -> None:
        """Events on `clock`; `ordinal` gives the device in force."""
        self._clock = clock
        self._ordinal = ordinal

    def Event(self, enable_timing: bool = False, **_options: object) -> Event:
        """A new event."""
        return Event(self._clock)

    def synchronize(self, device: object = None) -> None:
        """Nothing: a launch has ended when it returns."""

    def current_device(self) -> int:
        """The ordinal of the device in force."""
        return self._ordinal()

    def set_device(self, device: object) -> None:
        """Nothing: the chip and the target in force decide."""

    def current_stream(self, device: object = None) -> int:
        """The default stream."""
        return 0


class Event:
    """A point on the modelled clock, as `torch.cuda.Event` is one on a GPU's."""

    def __init__(self, clock: Clock) -> None:
        """Not recorded yet; the clock starts."""
        self._clock = clock
        self._ticks: int | None = None
        clock.start()

    def record(self, stream: object = None) -> None:
        """The event happens now."""
        self._ticks = self._clock.now()

    def elapsed_time(self, end: Event) -> float:
        """Modelled milliseconds from this event to `end`.

        Raises:
            UsageError: where one of the two was not recorded.
        """
        if self._ticks is None or end._ticks is None:
            raise UsageError("elapsed_time of an event that was not recorded", hint="call record() on both events")
        return (end._ticks - self._ticks) / TICKS_PER_MILLISECOND

    def synchronize(self) -> None:
        """Nothing: what was recorded has happened."""

    def query(self) -> bool:
        """Whether the event has happened."""
        return self._ticks is not None


def time_once(clock: Clock, call: Callable[[], object]) -> float:
    """Modelled milliseconds of the launches in one `call`, which nobody makes for what they write.

    Raises:
        CaptureError: where launches are recorded.
    """
    recorder = memory().recorder
    if recorder is not None:
        raise recorder.refuse("a benchmark times launches")
    clock.start()
    before = clock.now()
    with only_timed():
        call()
    return (clock.now() - before) / TICKS_PER_MILLISECOND


def make_benchmarker(clock: Clock) -> Callable[..., Sequence[float]]:
    """The autotuner's benchmarker: one run of a configuration, the same figure for every quantile."""

    def benchmark(kernel_call: Callable[[], object], *, quantiles: Sequence[float], **_options: object) -> list[float]:
        return [time_once(clock, kernel_call)] * len(quantiles)

    return benchmark


def make_do_bench(clock: Clock) -> Callable[..., float | list[float]]:
    """`triton.testing.do_bench` on the modelled clock: one run to warm up, one that counts."""

    def do_bench(
        fn: Callable[[], object],
        warmup: float = 25,
        rep: float = 100,
        grad_to_none: Iterable[Any] | None = None,
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
    ) -> float | list[float]:
        """Modelled milliseconds of one `fn()`; `warmup` and `rep` change nothing, all quantiles are alike."""
        with only_timed():
            fn()
        for leaf in grad_to_none or ():
            leaf.grad = None
        milliseconds = time_once(clock, fn)
        if quantiles is not None:
            return milliseconds if len(quantiles) == 1 else [milliseconds] * len(quantiles)
        return [milliseconds] if return_mode == "all" else milliseconds

    return do_bench


def make_do_bench_cudagraph(clock: Clock) -> Callable[..., float | list[float]]:
    """`triton.testing.do_bench_cudagraph`, which has no `warmup`: the same figure as `do_bench`."""
    do_bench = make_do_bench(clock)

    def do_bench_cudagraph(
        fn: Callable[[], object],
        rep: float = 20,
        grad_to_none: Iterable[Any] | None = None,
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
    ) -> float | list[float]:
        """Modelled milliseconds of one `fn()`."""
        return do_bench(fn, rep=rep, grad_to_none=grad_to_none, quantiles=quantiles, return_mode=return_mode)

    return do_bench_cudagraph


def refuse_stale_do_bench() -> NoReturn:
    """Stops a `do_bench` that was imported before the activation.

    It would run the kernel until 100 ms have passed on the modelled clock: some 10 000 simulated launches.

    Raises:
        UsageError: always.
    """
    raise UsageError(
        "this do_bench was imported from triton.testing before triptych's driver was activated",
        hint="call triton.testing.do_bench, or import it after triptych.languages.triton.activate()",
    )
