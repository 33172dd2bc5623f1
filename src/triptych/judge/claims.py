"""What judge and sandbox say to each other, as bytes: a JSON header and blobs. Whatever a sandbox says is a claim."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

_T = TypeVar("_T")
_MAGIC = b"triptych.judge/1\n"
_LENGTH_BYTES = 8


class ForgedReply(Exception):
    """A sandboxed process answered with something that is no answer to what it was asked."""


def join(header: Mapping[str, Any], blobs: Sequence[bytes] = ()) -> bytes:
    """A message: the header as JSON, then the blobs, each with its length before it."""
    parts = [_MAGIC]
    for data in (json.dumps(header, allow_nan=False).encode(), *blobs):
        parts += [len(data).to_bytes(_LENGTH_BYTES, "little"), data]
    return b"".join(parts)


def split(message: bytes, most: int) -> tuple[Claim, list[bytes]]:
    """The header and the blobs of a message; the header has at most so many bytes: read, it takes 24 times as many.

    Raises:
        ForgedReply: where it is none.
    """
    if not message.startswith(_MAGIC):
        raise ForgedReply("the reply does not begin as one does")
    parts: list[bytes] = []
    position = len(_MAGIC)
    while position < len(message) or not parts:
        start = position + _LENGTH_BYTES
        position = start + int.from_bytes(message[position:start], "little")
        if position > len(message):
            raise ForgedReply("the reply is cut short")
        parts.append(message[start:position])
    if len(parts[0]) > most:
        raise ForgedReply(f"a header of {len(parts[0])} bytes")
    try:
        header: object = json.loads(parts[0])
    except (ValueError, RecursionError) as problem:
        raise ForgedReply("the reply's header is no JSON") from problem
    return Claim(header, "reply"), parts[1:]


class Claim:
    """A JSON object that somebody claims: its members are read by name and type."""

    def __init__(self, value: object, place: str) -> None:
        """The members of a JSON object; `place` is how errors call it.

        Raises:
            ForgedReply: where it is no object.
        """
        if not isinstance(value, dict):
            raise ForgedReply(f"{place}: expected an object")
        self._members = cast("dict[str, object]", value)
        self._place = place

    def has(self, name: str) -> bool:
        """Whether it has a member that is not null."""
        return self._members.get(name) is not None

    def text(self, name: str, most: int = 1 << 16) -> str:
        """A text, of at most so many characters."""
        value = self._get(name, str)
        if len(value) > most:
            raise ForgedReply(f"{self._place}.{name}: {len(value)} characters")
        return value

    def number(self, name: str) -> int:
        """A whole number of 0 or more, below 2⁶³."""
        return _natural(self._members.get(name), f"{self._place}.{name}")

    def numbers(self, name: str) -> tuple[int, ...]:
        """A list of them."""
        return tuple(_natural(one, f"{self._place}.{name}") for one in self._get(name, list))

    def values(self, name: str) -> dict[str, int | float]:
        """An object of numbers, none negative."""
        members = self._get(name, dict)
        for key, value in members.items():
            if type(value) not in (int, float) or not 0 <= value < 1 << 63:
                raise ForgedReply(f"{self._place}.{name}.{key}: expected a number")
        return members

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        found = self._get(name, list)
        if any(type(one) is not str for one in found):
            raise ForgedReply(f"{self._place}.{name}: expected texts")
        return tuple(found)

    def each(self, name: str, read: Callable[[Claim], _T]) -> tuple[_T, ...]:
        """A list of objects, each read by `read`."""
        items = enumerate(self._get(name, list))
        return tuple(read(Claim(item, f"{self._place}.{name}[{number}]")) for number, item in items)

    def inner(self, name: str) -> Claim:
        """A member that is an object itself."""
        return Claim(self._members.get(name), f"{self._place}.{name}")

    def _get(self, name: str, kind: type[Any]) -> Any:  # noqa: ANN401  # of the kind asked for
        value = self._members.get(name)
        if type(value) is not kind:
            raise ForgedReply(f"{self._place}.{name}: expected {kind.__name__}")
        return value


def _natural(value: object, place: str) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ForgedReply(f"{place}: expected a whole number of 0 or more")
    return value
