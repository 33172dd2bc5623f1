"""Text of others on a page: signs that would not be seen, or would turn the line around, become visible."""

from __future__ import annotations

import re

from markupsafe import Markup

# Control characters but for tab and newline, marks of direction, halves of surrogate pairs, and what is no character.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufffe\uffff]"
)


def visible(text: str) -> str:
    """The text with each unseen sign as Python writes it: `a\\x1b[1m`.

    Files named in bytes that are no UTF-8, and a name that reads from right to left so as to look like another, are
    thus told apart, and the text can be written as UTF-8.
    """
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def finish(value: object) -> object:
    """What a template prints of a value, before it is escaped; markup of our own stays as it is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
