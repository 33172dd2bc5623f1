"""Texts of processes without what differs from run to run: the same candidate gets the same verdict, to the letter."""

from __future__ import annotations

import re

_OBJECT = re.compile(r"\bat 0x[0-9a-fA-F]+(?=>)")
"""As Python shows an object that has no text of its own."""
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d{2,}")
_OMITTED = "…"


def without_addresses(text: str) -> str:
    """A message without the host addresses of Python's objects; those of a device's memory stay: they are the same."""
    return _OBJECT.sub(f"at {_OMITTED}", text)


def without_numbers_of_processes(text: str) -> str:
    """How a process ended, its first line, and what it wrote last, without numbers of processes, threads, addresses.

    They look like any other number, so that all of two digits or more are left out of what it wrote.
    """
    ended, line, wrote = text.partition("\n")
    return ended + line + _NUMBER.sub(_OMITTED, wrote)
