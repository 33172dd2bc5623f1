"""`.file` and `.loc` -> where each instruction comes from."""

from __future__ import annotations

import re
from bisect import bisect_right
from copy import copy

from triptych.core.source import BUILT_IN_HEADER, SourceLocation
from triptych.gpu.syntax.ast import Origin
from triptych.gpu.syntax.literals import parse_integer
from triptych.gpu.syntax.tokens import Tokens

INLINE_ASSEMBLY = re.compile(r"//[ \t]*(begin|end) inline asm")
MOST_FRAMES = 32
"""A function inlined into itself names its own line as the caller: the chain of frames is cut here."""
Place = tuple[int, int, int]
"""File number, line, column."""


class Origins:
    """The source place in force while a module is parsed (`current`), changed by each `.loc`."""

    def __init__(self, tokens: Tokens) -> None:
        """Read every `.file` directive first: NVRTC writes them at the end, Triton after the functions."""
        self.tokens = tokens
        self.files: dict[int, str] = {}
        self.current: Origin | None = None
        self._origins: dict[tuple[SourceLocation, ...], Origin] = {}
        self._chains: dict[Place, tuple[SourceLocation, ...]] = {}
        """By place, where it last stood and what that was inlined through."""
        self._blocks = [match.start() for match in INLINE_ASSEMBLY.finditer(tokens.text) if match[1] == "begin"]
        self._ends = [match.start() for match in INLINE_ASSEMBLY.finditer(tokens.text) if match[1] == "end"]
        self._read_block: int | None = None
        self._read_files()

    def start_function(self) -> None:
        """Forget the places: a function starts without one."""
        self.current = None
        self._chains = {}

    def part(self, tokens: Tokens) -> Origins:
        """Of a function whose body's tokens these are; files are those of the module."""
        part = copy(self)
        part.tokens = tokens
        part._read_block = None
        part.start_function()
        return part

    def _read_files(self) -> None:
        tokens = self.tokens
        try:
            while True:
                tokens.at = tokens.texts.index(".file", tokens.at) + 1
                number = parse_integer(tokens, "a file number")
                self.files[number] = _take_string(tokens, "a file name")
        except ValueError:
            tokens.at = 0

    def parse_file(self) -> None:
        """Pass a `.file` directive (`.file 1 "name", time, size`) that was read before."""
        tokens = self.tokens
        parse_integer(tokens, "a file number")
        _take_string(tokens, "a file name")
        while tokens.accept(","):
            parse_integer(tokens, "a file's time or size")

    def parse_location(self) -> None:
        """Pass a `.loc` directive, whose first token is passed, and make it the current place.

        LLVM numbers the lines of inline assembly itself as if they were the source's, so inside
        `// begin inline asm` … `// end inline asm` only the first `.loc` counts.
        """
        tokens = self.tokens
        offset = tokens.starts[tokens.at - 1]
        place = self._parse_place()
        caller: Place | None = None
        while tokens.accept(","):
            if tokens.accept("function_name"):
                tokens.take_name("the name of an inlined function")
                if tokens.accept("+"):
                    parse_integer(tokens, "an offset")
            elif tokens.accept("inlined_at"):
                caller = self._parse_place()
            else:
                raise tokens.expected("'function_name' or 'inlined_at'")
        self._skip_options()
        if not self._is_false(offset):
            self._enter(place, caller)

    def _parse_place(self) -> Place:
        tokens = self.tokens
        file, line, column = tokens.texts[tokens.at : tokens.at + 3] if tokens.peek() else ("", "", "")
        if len(file + line + column) < 30 and file.isdecimal() and line.isdecimal() and column.isdecimal():
            tokens.at += 3
            return int(file), int(line), int(column)
        return (
            parse_integer(tokens, "a file number"),
            parse_integer(tokens, "a line number"),
            parse_integer(tokens, "a column number"),
        )

    def _skip_options(self) -> None:
        tokens = self.tokens
        while tokens.peek() in ("prologue_end", "epilogue_begin", "basic_block"):
            tokens.take()
        if tokens.peek() in ("is_stmt", "discriminator", "isa"):
            tokens.take()
            parse_integer(tokens, "a number")

    def _is_false(self, offset: int) -> bool:
        block = bisect_right(self._blocks, offset)
        if block == bisect_right(self._ends, offset):
            return False
        first = self._read_block != block
        self._read_block = block
        return not first

    def _enter(self, place: Place, caller: Place | None) -> None:
        above: tuple[SourceLocation, ...] = ()
        if caller is not None:
            above = self._chains.get(caller) or (self._locate(caller),)
        chain = (self._locate(place), *above)[: MOST_FRAMES + 1]
        self._chains[place] = chain
        origin = self._origins.get(chain)
        if origin is None:
            origin = self._origins[chain] = _origin(chain)
        self.current = origin

    def _locate(self, place: Place) -> SourceLocation:
        return SourceLocation(self.files.get(place[0], f"<file {place[0]}>"), place[1])


def _origin(chain: tuple[SourceLocation, ...]) -> Origin:
    """The places of a chain that a reader can open, innermost first; of none such, the innermost by a bare name."""
    real = [place for place in chain if not place.file.endswith(BUILT_IN_HEADER)]
    where, *frames = real or [SourceLocation(BUILT_IN_HEADER, chain[0].line)]
    return Origin(where, tuple(frames))


def _take_string(tokens: Tokens, what: str) -> str:
    token = tokens.peek()
    if len(token) < 2 or token[0] != '"':
        raise tokens.expected(what)
    tokens.take()
    return token[1:-1].replace('\\"', '"').replace("\\\\", "\\")
