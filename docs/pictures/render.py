"""Draws the README's picture: parts of what `triptych demo` prints, as an SVG that needs no font from a network.

python docs/pictures/render.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from rich.console import Console
from rich.style import Style
from rich.text import Text

PICTURE = Path(__file__).with_name("demo.svg")
COLUMNS = 100
SHOWN = (("problem", "triptych  NVIDIA"), ("NVIDIA H100", "AWS Trainium2"))
"""The parts: from the line that starts with the first text up to the line that starts with the second."""

ADVANCE, LEADING, MARGIN = 8.43, 18, 16
"""Pixels from one character to the next (0.602 of 14, as in most monospaced fonts), from line to line, and around."""
COLOURS = {2: "green"}
"""Of the terminal's colours, those that the output has."""
HEAD = """\
<svg viewBox="0 0 {width:.0f} {height:.0f}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>What triptych demo prints</title>
<style>
text {{ font: 14px ui-monospace, "DejaVu Sans Mono", "SF Mono", Menlo, Consolas, monospace; fill: #c9d1d9; }}
.bold {{ font-weight: bold; }}
.green {{ fill: #56d364; }}
</style>
<rect width="{width:.0f}" height="{height:.0f}" rx="8" fill="#161b22"/>
"""


def main() -> None:
    """Runs the command and writes the picture."""
    environment = os.environ | {"COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    program = Path(sys.executable).with_name("triptych")
    done = subprocess.run([program, "demo"], capture_output=True, text=True, env=environment, check=True)
    printed = list(Text.from_ansi(done.stdout).split("\n", allow_blank=True))
    lines = [Text("$ triptych demo", "bold"), Text()]
    for first, last in SHOWN:
        lines += part(printed, first, last)
    while not lines[-1].plain.strip():
        lines.pop()
    PICTURE.write_text(drawing(lines), "utf-8")


def part(printed: Sequence[Text], first: str, last: str) -> Sequence[Text]:
    """The lines from `first` up to `last`, with those that stand right above."""
    start = next(index for index, line in enumerate(printed) if line.plain.startswith(first))
    end = next(index for index, line in enumerate(printed) if index > start and line.plain.startswith(last))
    while start and printed[start - 1].plain.strip():
        start -= 1
    return printed[start:end]


def drawing(lines: Sequence[Text]) -> str:
    """The lines as an SVG; every word has its own place, so that columns stay in line whatever the font."""
    width, height = COLUMNS * ADVANCE + 2 * MARGIN, len(lines) * LEADING + 2 * MARGIN
    words = (word for row, line in enumerate(lines) for word in _words(line, MARGIN + LEADING * (row + 0.75)))
    return HEAD.format(width=width, height=height) + "".join(words) + "</svg>\n"


def _words(line: Text, y: float) -> Iterator[str]:
    column = 0
    for segment in line.render(Console()):
        style = segment.style or Style()
        names = ["bold"] if style.bold else []
        names += [COLOURS[style.color.number]] if style.color and style.color.number in COLOURS else []
        for match in re.finditer(r"\S+( \S+)*", segment.text):
            x = MARGIN + ADVANCE * (column + match.start())
            kind = f' class="{" ".join(names)}"' if names else ""
            yield f'<text x="{x:.1f}" y="{y:.1f}"{kind}>{escape(match[0])}</text>\n'
        column += len(segment.text)


if __name__ == "__main__":
    main()
