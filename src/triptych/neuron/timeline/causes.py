"""Why an instruction did not begin earlier."""

from __future__ import annotations

from enum import Enum


class Cause(Enum):
    """What an instruction waited for last; the value is how reports say it."""

    NOTHING = "nothing"
    """It began with the kernel."""
    QUEUE = "the instruction before it"
    """Its engine was busy with that."""
    DATA = "data"
    """It reads what another writes (read after write)."""
    BUFFER_READ = "a buffer that is still read"
    """It writes what another reads (write after read): it waits for the other's end, not for its result."""
    BUFFER_WRITTEN = "a buffer that is still written"
    """It writes what another writes (write after write)."""
    CONTROL = "a loop's condition"
    """Whether it is executed was decided by another."""
    SPACE = "room on the chip"
    """A tile that it is the first to use had no place in SBUF or PSUM."""
    DMA_QUEUES = "a DMA queue"
    """As many transfers as there are queues were under way."""
    DMA_ENGINES = "the DMA engines"
    """They moved other transfers' bytes."""
    HBM = "HBM's bandwidth"
    PORT = "the port of SBUF"
    """Another engine that shares it was at work."""
    MEETING = "another program"

    def __repr__(self) -> str:
        """The name alone."""
        return self.name
