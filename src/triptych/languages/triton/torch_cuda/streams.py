"""Streams and events of the simulated device: launches run in order, each to its end, whatever stream they are on."""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

from types import TracebackType
from typing import Any

from triptych.languages.triton.benchmark import Event
from triptych.languages.triton.clock import Clock
from triptych.languages.triton.torch_cuda.marks import DEVICE


class Stream:
    """What `torch.cuda.Stream` is to scripts; the default stream has the number 0."""

    def __init__(self, device: object = None, priority: int = 0, **_options: object) -> None:
        """A stream; all of them are one."""
        self.device = DEVICE
        self.priority = priority
        self.cuda_stream = 0
        self.stream_id = 0

    def synchronize(self) -> None:
        """Nothing: a launch has ended when it returns."""

    def query(self) -> bool:
        """Whether all work has ended: always."""
        return True

    def is_capturing(self) -> bool:
        """Whether a graph is being captured: never."""
        return False

    def wait_stream(self, stream: object) -> None:
        """Nothing: the other's work has ended."""

    def wait_event(self, event: object) -> None:
        """Nothing: what was recorded has happened."""

    def record_event(self, event: Any = None) -> Any:
        """The event, a new one where none is given, happens now."""
        if event is None:
            raise TypeError("record_event without an event: make one with torch.cuda.Event()")
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        """Nothing changes: see `torch.cuda.stream`."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing changes."""

    def __eq__(self, other: object) -> bool:
        """All streams are one."""
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        """As all streams'."""
        return 0


def event_class(clock: Clock) -> type[Event]:
    """The class that stands for `torch.cuda.Event`: events on `clock`, whose times are modelled."""

    class CudaEvent(Event):
        """A point on the modelled clock."""

        def __init__(self, enable_timing: bool = False, **_options: object) -> None:
            """Not recorded yet."""
            super().__init__(clock)

        def wait(self, stream: object = None) -> None:
            """Nothing: what was recorded has happened."""

    return CudaEvent
