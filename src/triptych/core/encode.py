"""Plan -> JSON document and blobs. `decode` reads what this file writes: change both together, and the schema."""

from __future__ import annotations

import hashlib
import struct

from triptych.core.arrays import Handle, Storage
from triptych.core.plan import (
    Allocate,
    Argument,
    Block,
    Choose,
    Constant,
    Copy,
    Fill,
    Launch,
    Node,
    Plan,
    Program,
    Scalar,
)

SCHEMA = "triptych.plan/1"

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]


class PlanEncoder:
    """Writes one plan: storages are listed once and referred to by their place, texts and bytes become blobs."""

    def __init__(self) -> None:
        """Nothing written yet."""
        self.blobs: dict[str, bytes] = {}
        self._storages: dict[Storage, int] = {}

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
        match node:
            case Allocate(storage):
                return {"node": "allocate", "storage": self._reference(storage)}
            case Fill(target, value):
                return {"node": "fill", "target": self._handle(target), "value": _number(value)}
            case Copy(target, source):
                return {"node": "copy", "target": self._handle(target), "source": self._handle(source)}
            case Constant(storage, data):
                return {"node": "constant", "storage": self._reference(storage), "data": self._blob(data)}
            case Launch():
                return self._launch(node)
            case Choose(labels, alternatives):
                return {
                    "node": "choose",
                    "labels": list(labels),
                    "alternatives": [self._plan(alternative) for alternative in alternatives],
                }

    def _launch(self, node: Launch) -> dict[str, Json]:
        return {
            "node": "launch",
            "program": node.program,
            "entry": node.entry,
            "grid": list(node.grid),
            "block": list(node.block),
            "arguments": [self._argument(argument) for argument in node.arguments],
            "shared_bytes": node.shared_bytes,
            "cluster": list(node.cluster),
            "cooperative": node.cooperative,
        }

    def _argument(self, argument: Argument) -> dict[str, Json]:
        match argument:
            case Handle():
                return {"handle": self._handle(argument)}
            case Scalar(dtype, value):
                return {"scalar": _number(value), "dtype": dtype.name}
            case Block(data):
                return {"block": self._blob(data)}

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
