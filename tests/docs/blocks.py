"""Fenced blocks of the documentation, and what it takes to run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```(.*)$")
_REASON = re.compile(r"<!-- not run: .+ -->")
_NAME = re.compile(r"# ([\w/]+\.py)")
_PRINTED = re.compile(r"print\(.*\)  # (.*)")
_STATUS = re.compile(r"\(exit status (\d+)\)")
ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its info string, where its text starts, the text, and whether a reason stands above."""

    kind: str
    line: int
    text: str
    excused: bool

    @property
    def file(self) -> str | None:
        """The name of the file that a Python block is, where its first line is a comment that gives one."""
        match = _NAME.fullmatch(self.text.partition("\n")[0])
        return match[1] if match and self.kind == "python" else None


@dataclass(frozen=True, slots=True)
class Command:
    """A line of a console block, what it prints (`…` for anything), and its exit status."""

    line: int
    command: str
    output: Sequence[str]
    status: int


def blocks_of(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    start, kind, excused = 0, "", False
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, text in enumerate(lines, 1):
        fence = _FENCE.match(text)
        if fence is None:
            continue
        if start:
            yield Block(kind, start, "\n".join(lines[start - 1 : number - 1]) + "\n", excused)
            start = 0
        else:
            start, kind = number + 1, fence[1]
            excused = number >= 2 and _REASON.fullmatch(lines[number - 2]) is not None
    assert not start, f"{page.name}:{start - 1}: a fence that never closes"


def commands_of(block: Block) -> Sequence[Command]:
    """The commands of a console block: each starts with `$ `, what it prints follows."""
    found: list[Command] = []
    for offset, text in enumerate(block.text.rstrip("\n").split("\n")):
        if text.startswith("$ "):
            found.append(Command(block.line + offset, text[2:], [], 0))
            continue
        last = found[-1]
        status = _STATUS.fullmatch(text)
        if status is not None:
            found[-1] = Command(last.line, last.command, last.output, int(status[1]))
        else:
            found[-1] = Command(last.line, last.command, [*last.output, text.rstrip()], last.status)
    return found


def expected_prints(block: Block) -> Sequence[str]:
    """What the `print(…)  # …` lines of a Python block say that they print."""
    return [match[1] for text in block.text.splitlines() if (match := _PRINTED.fullmatch(text.strip()))]


def script_of(blocks: Sequence[Block]) -> str:
    """The blocks as one script, each statement at the line that it has in the page."""
    text = ""
    for block in blocks:
        text += "\n" * (block.line - 1 - text.count("\n")) + block.text
    return text


def run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs it as a reader would, in a terminal of 100 columns; standard error and output are one stream."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRIPTYCH_")}
    environment |= {"COLUMNS": "100", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        command, cwd=folder, env=environment, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def matches(expected: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether lines are as expected: a line `…` stands for any lines, `…` inside a line for anything in it.

    Any number of spaces is as good as any other, so that a figure left out need not break a column.
    """
    if not expected:
        return not printed
    if expected[0] == ELLIPSIS:
        return any(matches(expected[1:], printed[skip:]) for skip in range(len(printed) + 1))
    if not printed:
        return False
    pattern = ".*".join(map(re.escape, _spaced(expected[0]).split(ELLIPSIS)))
    return re.fullmatch(pattern, _spaced(printed[0])) is not None and matches(expected[1:], printed[1:])


def _spaced(line: str) -> str:
    return " ".join(line.split())
