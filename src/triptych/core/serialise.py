"""Plans as JSON and blobs: the same plan gives the same bytes in every process, so a plan has a digest.

The JSON (schema `triptych.plan/1`) holds the structure; program texts and constants are blobs, named by their SHA-256.
`pack` puts both into one byte string: a magic line, the SHA-256 of all that follows, and the JSON and the blobs in the
order of their names, each with its length in 8 bytes (little-endian) before it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from triptych.core.decode import PlanDecoder
from triptych.core.encode import PlanEncoder
from triptych.core.errors import PlanError
from triptych.core.plan import Plan
from triptych.core.validate import check_plan

MAGIC = b"triptych.plan/1\n"
_LENGTH_BYTES = 8
_MOST_TEXT = 16 << 20
"""Bytes of a packed plan's JSON: that of 20000 launches. Read, it takes up to 24 times as many."""


@dataclass(frozen=True, slots=True)
class Serialised:
    """A plan's JSON, and the blobs that it names by their SHA-256 in hexadecimal."""

    text: str
    blobs: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        """The SHA-256 of the JSON, which names every blob by its own: equal for equal plans alone."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def serialise(plan: Plan) -> Serialised:
    """The plan as JSON and blobs.

    Raises:
        PlanError: where the plan is inconsistent.
    """
    check_plan(plan)
    encoder = PlanEncoder()
    document = encoder.document(plan)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return Serialised(text, dict(sorted(encoder.blobs.items())))


def digest(plan: Plan) -> str:
    """The plan's name by contents, in hexadecimal."""
    return serialise(plan).digest


def deserialise(serialised: Serialised) -> Plan:
    """The plan again.

    Raises:
        PlanError: where the JSON is damaged, a blob is missing or altered, or the plan is inconsistent.
    """
    for name, data in serialised.blobs.items():
        if hashlib.sha256(data).hexdigest() != name:
            raise PlanError(f"plan: blob {name} is damaged: its contents have another SHA-256")
    try:
        document: object = json.loads(serialised.text)
    except (ValueError, RecursionError) as error:
        raise PlanError(f"plan: not JSON: {error}") from error
    plan = PlanDecoder(serialised.blobs).plan_of(document)
    if serialise(plan) != serialised:
        raise PlanError("plan: not written as `serialise` writes it, so that its digest would not be its own")
    return plan


def pack(plan: Plan) -> bytes:
    """The plan as one byte string, for a file or another process."""
    serialised = serialise(plan)
    parts: list[bytes] = []
    for data in (serialised.text.encode(), *serialised.blobs.values()):
        parts += [len(data).to_bytes(_LENGTH_BYTES, "little"), data]
    body = b"".join(parts)
    return MAGIC + hashlib.sha256(body).digest() + body


def unpack(data: bytes | bytearray | memoryview) -> Plan:
    """The plan of `pack`'s bytes.

    Raises:
        PlanError: where they are damaged or cut short, or the plan is inconsistent.
    """
    if not isinstance(data, bytes | bytearray | memoryview):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise PlanError(f"expected the bytes of a packed plan, got {type(data).__name__}")
    data = bytes(data)
    start = len(MAGIC) + hashlib.sha256().digest_size
    if not data.startswith(MAGIC) or hashlib.sha256(data[start:]).digest() != data[len(MAGIC) : start]:
        raise PlanError("plan: the bytes are no packed plan, or damaged")
    parts = _split(data, start)
    if len(parts[0]) > _MOST_TEXT:
        raise PlanError(f"plan: {len(parts[0])} bytes of JSON; at most {_MOST_TEXT} are read")
    try:
        text = parts[0].decode()
    except UnicodeDecodeError as error:
        raise PlanError("plan: not JSON: the text is not UTF-8") from error
    return deserialise(Serialised(text, {hashlib.sha256(blob).hexdigest(): blob for blob in parts[1:]}))


def _split(data: bytes, position: int) -> list[bytes]:
    """The byte strings from `position` on, each with its length before it; at least one."""
    parts: list[bytes] = []
    while position < len(data) or not parts:
        start = position + _LENGTH_BYTES
        position = start + int.from_bytes(data[position:start], "little")
        if position > len(data):
            raise PlanError("plan: the bytes are cut short")
        parts.append(data[start:position])
    return parts
