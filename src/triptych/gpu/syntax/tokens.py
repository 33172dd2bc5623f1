"""PTX text -> tokens: one regular expression, and the places of its matches for error messages."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from triptych.core.errors import PtxSyntaxError
from triptych.core.source import SourceLocation

TOKEN = re.compile(
    r"""
    (?:\s+|//[^\n]*+|/\*(?s:.*?)\*/)*+                                   # space and comments
    (
      [A-Za-z_$%][\w$]*+(?:(?:\.|::)[\w$]+)*+                            # names, dotted opcodes, %tid.x
    | \.section\s+[\w.$]+\s*\{(?>[^{}/]+|//[^\n]*|/)*+\}                 # a whole debug section, as one token
    | \.[A-Za-z_]\w*+(?:::\w+)*+                                         # directives and types
    | \d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]\d+|\d\w*+                    # numbers, checked when converted
    | "(?:[^"\\\n]|\\.)*+"
    | <<|>>
    | \S
    | \Z
    )
    """,
    re.VERBOSE | re.ASCII,
)
NAME_START = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$%")
DEEPEST = 64
"""How deep brackets, braces and parentheses may be nested: far above what compilers write, far below Python's limit."""


class Tokens:
    """The tokens of a PTX text and a place in them (`at`); the last token is empty and marks the end of the text."""

    def __init__(
        self, text: str, name: str, parts: Sequence[tuple[int, int]] = (), newlines: Sequence[int] | None = None
    ) -> None:
        """Cut `text` into tokens; `name` is the file's name in errors.

        `parts`: from where to where it is cut, where that is not all of it. `newlines`: where its lines end, if known.
        """
        self.text = text
        self.name = name
        self.texts: list[str] = []
        self.starts: list[int] = []
        for start, end in parts or ((0, len(text)),):
            matches = list(TOKEN.finditer(text, start, end))
            if matches and not matches[-1][1]:
                matches.pop()
            self.texts += [match[1] for match in matches]
            self.starts += [match.start(1) for match in matches]
        end = parts[-1][1] if parts else len(text)
        self.texts += ("", "")
        self.starts += (end, end)
        self.newlines = [match.start() for match in re.finditer("\n", text)] if newlines is None else newlines
        self.at = 0

    def part(self, start: int, end: int) -> Tokens:
        """Those of a part of the text, with the places that they have in all of it."""
        return Tokens(self.text, self.name, ((start, end),), self.newlines)

    def line(self, index: int | None = None) -> int:
        """The line (from 1) of a token, by default of the next one."""
        return self.line_at(self.starts[self.at if index is None else index])

    def line_at(self, place: int) -> int:
        """The line (from 1) of a place of the text."""
        return bisect_right(self.newlines, place) + 1

    def peek(self) -> str:
        """The next token, left where it is."""
        return self.texts[self.at]

    def take(self) -> str:
        """The next token, passed; the end of the text is never passed."""
        token = self.texts[self.at]
        if token:
            self.at += 1
        return token

    def accept(self, token: str) -> bool:
        """Pass the next token if it is `token`."""
        if self.texts[self.at] == token:
            self.at += 1
            return True
        return False

    def expect(self, token: str, where: str = "") -> None:
        """Pass `token`; `where` completes the message (`after the parameters`)."""
        if self.texts[self.at] != token:
            raise self.expected(f"'{token}'{' ' + where if where else ''}")
        self.at += 1

    def take_name(self, what: str) -> str:
        """Pass a name; `what` says of what (`a function's name`)."""
        token = self.texts[self.at]
        if not token or token[0] not in NAME_START or "." in token or ":" in token:
            raise self.expected(what)
        self.at += 1
        return token

    def expected(self, what: str, index: int | None = None) -> PtxSyntaxError:
        """The error that `what` was expected where the next token (or the one at `index`) is."""
        found = self.texts[self.at if index is None else index]
        if not found:
            return self.error(f"expected {what}, found the end of the text: it is cut short", index)
        shown = found if len(found) <= 60 else found[:57] + "..."
        return self.error(f"expected {what}, found '{shown}'", index)

    def error(self, message: str, index: int | None = None, hint: str | None = None) -> PtxSyntaxError:
        """An error at the next token, or at the one at `index`."""
        return self.error_in(self.line(index), message, hint)

    def error_in(self, line: int, message: str, hint: str | None = None) -> PtxSyntaxError:
        """An error in a line."""
        return PtxSyntaxError(message, where=SourceLocation(self.name, line), hint=hint)
