"""The outline of a PTX text: where the bodies of functions lie, and plain variables, found without cutting it up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from triptych.gpu.syntax.ast import Variable
from triptych.gpu.syntax.tokens import Tokens
from triptych.gpu.syntax.variables import TYPE_BYTES

_SKIPPED = r"""//[^\n]*+ | /\*(?s:.*?)\*/ | "(?:[^"\\\n]|\\.)*+" """
"""Comments and strings, as `tokens.TOKEN` has them."""
OUTSIDE = re.compile(
    rf"""
    (?: [^.{{}};/"]++ | {_SKIPPED}
      | (?<![\w$%])\.section\s+[\w.$]+\s*\{{(?>[^{{}}/]+|//[^\n]*|/)*+\}}
      | (?! \.(?:entry|func)\b) [./"] | (?<=[\w$%]) \. )*+
    ( \.(?:entry|func)\b | [{{}};] )
    """,
    re.VERBOSE | re.ASCII,
)
INSIDE = re.compile(rf"""(?: [^{{}}/"]++ | {_SKIPPED} | [/"] )*+ ( [{{}}] )""", re.VERBOSE | re.ASCII)
PLAIN = re.compile(
    r"\s*+\.global \.align ([1248]) \.([bsu](?:8|16|32|64)) ([A-Za-z_$%][\w$]*+)"
    r"(?:\[([1-9]\d{0,8})\]| = (0|[1-9]\d{0,18}))?;",
    re.ASCII,
)
"""A declaration as compilers write it, of which headers make hundreds: alignment, type, name, elements, value."""
RUN = re.compile(f"(?:{PLAIN.pattern})+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Outline:
    """Places in a text; what lies inside of bodies is not looked at."""

    bodies: Mapping[int, int]
    """By the place of each body's `{` the place behind its `}`."""
    runs: Sequence[tuple[int, int]]
    """From where to where there are plain variables alone."""

    def gaps(self, end: int) -> list[tuple[int, int]]:
        """From where to where there is something else, braces of bodies included, up to the text's end."""
        left_out = sorted([(start + 1, behind - 1) for start, behind in self.bodies.items()] + [*self.runs])
        return list(zip((0, *(b for _, b in left_out)), (*(a for a, _ in left_out), end), strict=True))


def outline_of(text: str) -> Outline | None:
    """The outline; None where braces do not match."""
    bodies: dict[int, int] = {}
    runs: list[tuple[int, int]] = []
    at, is_function = 0, False
    while (match := OUTSIDE.match(text, at)) is not None:
        mark, at = match[1], match.end()
        if mark == "{":
            end = _end_of(text, at)
            if end is None:
                return None
            if is_function:
                bodies[at - 1], is_function = end, False
            at = end
        elif mark == "}":
            return None
        else:
            is_function = mark != ";"
            if not is_function and (run := RUN.match(text, at)) is not None:
                runs.append(run.span())
                at = run.end()
    return Outline(bodies, runs)


def _end_of(text: str, at: int) -> int | None:
    """The place behind the `}` that closes what was opened before `at`."""
    depth = 1
    while depth and (match := INSIDE.match(text, at)) is not None:
        depth += 1 if match[1] == "{" else -1
        at = match.end()
    return None if depth else at


def plain_variables(tokens: Tokens, start: int, end: int) -> Iterator[Variable]:
    """The variables of a run of the text.

    Raises:
        OverflowError: a value that does not fit its type.
    """
    for match in PLAIN.finditer(tokens.text, start, end):
        align, kind, name, count, value = match.groups()
        initial = None if value is None else int(value).to_bytes(TYPE_BYTES[kind], "little")
        elements = None if count is None else int(count)
        line = tokens.line_at(match.start(3))
        yield Variable(name, "global", kind, int(align), elements, initial, line=line)
