"""An HTML page as a test looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "br", "img", "input", "hr"})


class Parsed(HTMLParser):
    """Tags, attributes and text; fails on a tag that is not closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.pieces: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    @property
    def text(self) -> str:
        return " ".join("".join(self.pieces).split())

    def values(self, attribute: str) -> list[str]:
        """The attribute's values, in order."""
        return [value for _, name, value in self.attributes if name == attribute]

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}>"

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)
