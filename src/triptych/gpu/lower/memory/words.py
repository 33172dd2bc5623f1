"""Values of local memory as its words, a row of the warp's 32 for each word of a thread, and words as values."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from triptych.gpu.hardware import LOCAL_WORD_BYTES, WARP_SIZE
from triptych.gpu.lower.memory.access import HelperAccess
from triptych.gpu.lower.memory.interleaving import LOCAL_ROW_BYTES
from triptych.gpu.lower.memory.moves import interleave, take_apart
from triptych.gpu.lower.primitives.emitter import I32, POINTER, number, vector

ROW = vector(I32)


class Words:
    """What an access moves, as words: those of less than a word lie `shift` bits behind its beginning."""

    def __init__(self, b: ir.IRBuilder, access: HelperAccess) -> None:
        """Emits with `b`."""
        self.b, self.access = b, access
        self.count = max(access.bytes // LOCAL_WORD_BYTES, 1)
        self.are_whole = access.bytes >= LOCAL_WORD_BYTES
        self._element_words, self._word_elements = access.size // LOCAL_WORD_BYTES, LOCAL_WORD_BYTES // access.size

    def shift(self, address: ir.Value) -> ir.Value:
        """How many bits of its word lie before an address, an i32 each."""
        byte = self.b.and_(address, number(address.type, LOCAL_WORD_BYTES - 1))
        kind = ROW if isinstance(address.type, ir.VectorType) else I32
        return self.b.shl(self.b.trunc(byte, kind), number(kind, 3))

    def of(self, values: Sequence[ir.Value]) -> list[ir.Value]:
        """Values as words, at the beginning of what they have of one."""
        b = self.b
        if self._element_words:
            kind = vector(I32, WARP_SIZE * self._element_words)
            return [word for value in values for word in take_apart(b, b.bitcast(value, kind), self._element_words)]
        words: list[ir.Value] = []
        for index, value in enumerate(values):
            place = index % self._word_elements
            part = b.shl(b.zext(value, ROW), number(ROW, place * 8 * self.access.size))
            if place:
                words[-1] = b.or_(words[-1], part)
            else:
                words.append(part)
        return words

    def values(self, words: Sequence[ir.Value], shift: ir.Value) -> list[ir.Value]:
        """Words as values; `shift` is a row."""
        b, element = self.b, vector(self.access.element)
        if self._element_words:
            starts = range(0, len(words), self._element_words)
            groups = (words[start : start + self._element_words] for start in starts)
            return [b.bitcast(interleave(b, group), element) for group in groups]
        if not self.are_whole:
            words = [b.lshr(words[0], shift)]
        places = (divmod(index, self._word_elements) for index in range(self.access.count))
        return [b.trunc(b.lshr(words[i], number(ROW, part * 8 * self.access.size)), element) for i, part in places]

    def put(self, old: ir.Value, word: ir.Value, shift: ir.Value) -> ir.Value:
        """A word's new content: all of it, or its part behind the `shift`, a row."""
        b = self.b
        if self.are_whole:
            return word
        field = b.shl(number(ROW, (1 << 8 * self.access.bytes) - 1), shift)
        return b.or_(b.and_(old, b.not_(field)), b.shl(word, shift))

    def read(self, rows: Sequence[ir.Value]) -> list[ir.Value]:
        """The words of all lanes."""
        return [self.b.load(row, align=LOCAL_WORD_BYTES, typ=ROW) for row in rows]

    def write(
        self, rows: Sequence[ir.Value], words: Sequence[ir.Value], shift: ir.Value, lanes: ir.Value | None = None
    ) -> None:
        """Puts words into rows, all lanes' or those of `lanes`, a <32 x i1>."""
        b = self.b
        for row, word in zip(rows, words, strict=False):
            old = b.load(row, align=LOCAL_WORD_BYTES, typ=ROW)
            new = self.put(old, word, shift)
            b.store(new if lanes is None else b.select(lanes, new, old), row, align=LOCAL_WORD_BYTES)

    def rows(self, start: ir.Value) -> list[ir.Value]:
        """Pointers to the rows of all words, the first one being at `start`, an i64."""
        return [
            self.b.inttoptr(self.b.add(start, number(start.type, i * LOCAL_ROW_BYTES)), POINTER)
            for i in range(self.count)
        ]
