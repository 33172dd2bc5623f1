"""Plan -> JSON document and blobs. `decode` reads what this file writes: change both together, and the schema.

A node is written field by field, each by its annotation: a new kind of node needs something here only where it has a
field of a new type.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Mapping
from typing import Any

from triptych.core.handles import Handle, Storage
from triptych.core.plan import Argument, Node, Plan, Program, Scalar, Struct, fields_of

SCHEMA = "triptych.plan/1"

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]


class PlanEncoder:
    """Writes one plan: storages are listed once and referred to by their place, texts and bytes become blobs."""

    def __init__(self) -> None:
        """Nothing written yet."""
        self.blobs: dict[str, bytes] = {}
        self._storages: dict[Storage, int] = {}
        self._write: Mapping[object, Callable[[Any], Json]] = {
            str: str,
            int: int,
            bool: bool,
            int | float: _number,
            bytes: self._blob,
            Storage: self._reference,
            Handle: self._handle,
            tuple[str, ...]: list[Json],
            tuple[int, int, int]: list[Json],
            tuple[Argument, ...]: lambda arguments: [self._argument(one) for one in arguments],
            tuple[Plan, ...]: lambda plans: [self._plan(one) for one in plans],
        }

    @property
    def types(self) -> frozenset[object]:
        """The types that a node's field may have."""
        return frozenset(self._write)

    def document(self, plan: Plan) -> dict[str, Json]:
        """The whole document."""
        body = self._plan(plan)
        storages: list[Json] = [_storage(storage) for storage in self._storages]
        return {"schema": SCHEMA, "storages": storages, "plan": body}

    def _plan(self, plan: Plan) -> dict[str, Json]:
        return {
            "programs": {name: self._program(program) for name, program in plan.programs.items()},
            "inputs": [self._handle(handle) for handle in plan.inputs],
            "outputs": [self._handle(handle) for handle in plan.outputs],
            "nodes": [self._node(node) for node in plan.nodes],
        }

    def _program(self, program: Program) -> Json:
        return {
            "machine": program.machine,
            "language": program.language,
            "target": program.target,
            "text": self._blob(program.text.encode()),
        }

    def _node(self, node: Node) -> dict[str, Json]:
        fields = {name: self._write[kind](getattr(node, name)) for name, kind in fields_of(type(node)).items()}
        return {"node": type(node).__name__.lower(), **fields}

    def _argument(self, argument: Argument) -> dict[str, Json]:
        match argument:
            case Handle():
                return {"handle": self._handle(argument)}
            case Scalar(dtype, value):
                return {"scalar": _number(value), "dtype": dtype.name}
            case Struct(data, pointers):
                places: list[Json] = [{"offset": offset, "handle": self._handle(one)} for offset, one in pointers]
                return {"block": self._blob(data), **({"pointers": places} if places else {})}

    def _handle(self, handle: Handle) -> Json:
        return {
            "storage": self._reference(handle.storage),
            "dtype": handle.dtype.name,
            "shape": list(handle.shape),
            "strides": list(handle.strides),
            "offset": handle.offset,
        }

    def _reference(self, storage: Storage) -> int:
        return self._storages.setdefault(storage, len(self._storages))

    def _blob(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        self.blobs[name] = data
        return name


def _storage(storage: Storage) -> Json:
    return {"name": storage.name, "address": storage.address, "size": storage.size, "writable": storage.writable}


def _number(value: int | float) -> Json:
    """An integer as itself, a float by the bits of its binary64: JSON has no NaN, and decimal text may round."""
    if isinstance(value, int):
        return int(value)
    return {"bits": struct.pack(">d", value).hex()}
