"""What the blocks of a launch print: kept apart, in bounds, and put together in the order of the blocks."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class _BlockText:
    """One block's text in the order of execution."""

    pieces: list[bytes] = field(default_factory=list[bytes])
    size: int = 0
    """Bytes that found room as far as the block alone goes."""
    overflow: int = 0
    """Those that did not."""
    is_kept: bool = True
    """Whether its text may still be among the first bytes of the launch."""


class PrintedText:
    """The text of all blocks; the same whatever the number of workers."""

    def __init__(self, most: int) -> None:
        """At most `most` bytes are kept, of the first blocks."""
        self._most = most
        self._blocks: dict[int, _BlockText] = {}
        self._held = 0
        self._lock = threading.Lock()

    def write(self, block: int, text: bytes) -> bool:
        """Adds to a block's text; False where the block alone has printed all that there is room for."""
        with self._lock:
            own = self._blocks.setdefault(block, _BlockText())
            if own.overflow or own.size + len(text) > self._most:
                own.overflow += len(text)
                return False
            own.size += len(text)
            if own.is_kept:
                own.pieces.append(text)
                self._held += len(text)
                if self._held > 2 * self._most:
                    self._prune()
            return True

    def _prune(self) -> None:
        """Lets go of what can no longer be among the first bytes: blocks before it have printed enough."""
        before = self._held = 0
        for _, own in sorted(self._blocks.items()):
            if before > self._most:
                own.is_kept = False
                own.pieces.clear()
            before += own.size
            self._held += own.size if own.is_kept else 0

    def collect(self, last_block: int | None = None) -> str:
        """The text up to and with a block, in the order of the blocks; what was cut is told at its end."""
        if not self._blocks:
            return ""
        kept: list[bytes] = []
        room, dropped = self._most, 0
        for block, own in sorted(self._blocks.items()):
            if last_block is not None and block > last_block:
                break
            for piece in own.pieces:
                if dropped or len(piece) > room:
                    dropped += len(piece)
                else:
                    kept.append(piece)
                    room -= len(piece)
            dropped += own.overflow + (0 if own.is_kept else own.size)
        text = b"".join(kept).decode(errors="replace")
        if dropped:
            newline = "" if not text or text.endswith("\n") else "\n"
            text += f"{newline}[{dropped} more bytes were printed; TRIPTYCH_PRINTF_BYTES={self._most} is the limit]\n"
        return text
