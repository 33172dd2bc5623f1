"""JSON document and blobs -> Plan. Every value is checked as it is read: a document may come from a hostile process."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from triptych.core.dtypes import DTYPES, DType
from triptych.core.encode import SCHEMA
from triptych.core.errors import PlanError
from triptych.core.handles import Handle, Storage
from triptych.core.plan import NODES, Argument, Node, Plan, Program, Scalar, Struct, fields_of

_T = TypeVar("_T")


class Fields:
    """A JSON object whose members are read by name and type; `place` says in errors which object it is."""

    def __init__(self, value: object, place: str) -> None:
        """The members of `value`, which must be a JSON object."""
        if not isinstance(value, dict):
            raise PlanError(f"plan: {place}: expected an object")
        self._members = cast(dict[str, object], value)
        self.place = place

    def __contains__(self, name: str) -> bool:
        """Whether the object has the member."""
        return name in self._members

    def peek(self, name: str) -> object:
        """The member as it is, None where there is none."""
        return self._members.get(name)

    def get(self, name: str, kind: type[_T]) -> _T:
        """The member, of exactly this type (a JSON true is no integer)."""
        value = self._members.get(name)
        if type(value) is not kind:
            raise PlanError(f"plan: {self.place}.{name}: expected {kind.__name__}")
        return value

    def fields(self, name: str) -> Fields:
        """The member, an object."""
        return Fields(self._members.get(name), f"{self.place}.{name}")

    def each(self, name: str, read: Callable[[Fields], _T]) -> tuple[_T, ...]:
        """The member, a list of objects, each read by `read`."""
        items = enumerate(self._list(name))
        return tuple(read(Fields(item, f"{self.place}.{name}[{number}]")) for number, item in items)

    def values(self, name: str, kind: type[_T]) -> tuple[_T, ...]:
        """The member, a list of values of one type."""
        items = self._list(name)
        if any(type(item) is not kind for item in items):
            raise PlanError(f"plan: {self.place}.{name}: expected a list of {kind.__name__}")
        return tuple(cast(list[_T], items))

    def objects(self, name: str, read: Callable[[Fields], _T]) -> dict[str, _T]:
        """The member, an object whose members are objects, each read by `read`."""
        inner = self.fields(name)
        return {key: read(inner.fields(key)) for key in inner._members}

    def _list(self, name: str) -> list[object]:
        value = self._members.get(name)
        if not isinstance(value, list):
            raise PlanError(f"plan: {self.place}.{name}: expected a list")
        return cast(list[object], value)


class PlanDecoder:
    """Reads one plan's document; `blobs` are the byte strings that it names, already verified."""

    def __init__(self, blobs: Mapping[str, bytes]) -> None:
        """Nothing read yet."""
        self._blobs = blobs
        self._storages: tuple[Storage, ...] = ()
        self._read: Mapping[object, Callable[[Fields, str], object]] = {
            str: lambda fields, name: fields.get(name, str),
            int: lambda fields, name: fields.get(name, int),
            bool: lambda fields, name: fields.get(name, bool),
            int | float: _number,
            bytes: self._blob,
            Storage: self._storage,
            Handle: self._handle_of,
            tuple[str, ...]: lambda fields, name: fields.values(name, str),
            tuple[int, int, int]: _triple,
            tuple[Argument, ...]: self._arguments,
            tuple[Plan, ...]: self._plans,
        }

    @property
    def types(self) -> frozenset[object]:
        """The types that a node's field may have."""
        return frozenset(self._read)

    def plan_of(self, document: object) -> Plan:
        """The plan of a whole document."""
        fields = Fields(document, "document")
        if fields.peek("schema") != SCHEMA:
            raise PlanError(f"plan: expected schema {SCHEMA}")
        self._storages = fields.each("storages", _storage)
        try:
            return self._plan(fields.fields("plan"))
        except RecursionError as error:
            raise PlanError("plan: alternatives are nested too deep") from error

    def _plan(self, fields: Fields) -> Plan:
        return Plan(
            nodes=fields.each("nodes", self._node),
            programs=fields.objects("programs", self._program),
            inputs=fields.each("inputs", self._handle),
            outputs=fields.each("outputs", self._handle),
        )

    def _program(self, fields: Fields) -> Program:
        try:
            text = self._blob(fields, "text").decode()
        except UnicodeDecodeError as error:
            raise PlanError(f"plan: {fields.place}.text: not UTF-8") from error
        return Program(fields.get("machine", str), text, fields.get("language", str), fields.get("target", str))

    def _node(self, fields: Fields) -> Node:
        name = fields.get("node", str)
        if name not in NODES:
            raise PlanError(f"plan: {fields.place}: unknown node '{name}'")
        make = cast(Callable[..., Node], NODES[name])
        return make(**{name: self._read[kind](fields, name) for name, kind in fields_of(NODES[name]).items()})

    def _arguments(self, fields: Fields, name: str) -> tuple[Argument, ...]:
        return fields.each(name, self._argument)

    def _plans(self, fields: Fields, name: str) -> tuple[Plan, ...]:
        return fields.each(name, self._plan)

    def _argument(self, fields: Fields) -> Argument:
        if "handle" in fields:
            return self._handle_of(fields, "handle")
        if "block" in fields:
            pointers = fields.each("pointers", self._pointer) if "pointers" in fields else ()
            return Struct(self._blob(fields, "block"), pointers)
        return Scalar(_dtype(fields), _number(fields, "scalar"))

    def _pointer(self, fields: Fields) -> tuple[int, Handle]:
        return fields.get("offset", int), self._handle_of(fields, "handle")

    def _handle_of(self, fields: Fields, name: str) -> Handle:
        return self._handle(fields.fields(name))

    def _handle(self, fields: Fields) -> Handle:
        shape, strides = fields.values("shape", int), fields.values("strides", int)
        return Handle(self._storage(fields, "storage"), _dtype(fields), shape, strides, fields.get("offset", int))

    def _storage(self, fields: Fields, name: str) -> Storage:
        place = fields.get(name, int)
        if not 0 <= place < len(self._storages):
            raise PlanError(f"plan: {fields.place}.{name}: {place}, but the plan has {len(self._storages)} storages")
        return self._storages[place]

    def _blob(self, fields: Fields, name: str) -> bytes:
        digest = fields.get(name, str)
        if digest not in self._blobs:
            raise PlanError(f"plan: {fields.place}.{name}: blob {digest} is missing")
        return self._blobs[digest]


def _storage(fields: Fields) -> Storage:
    return Storage(
        fields.get("name", str), fields.get("address", int), fields.get("size", int), fields.get("writable", bool)
    )


def _dtype(fields: Fields) -> DType:
    name = fields.get("dtype", str)
    if name not in DTYPES:
        raise PlanError(f"plan: {fields.place}.dtype: unknown dtype '{name}'")
    return DTYPES[name]


def _triple(fields: Fields, name: str) -> tuple[int, int, int]:
    values = fields.values(name, int)
    if len(values) != 3:
        raise PlanError(f"plan: {fields.place}.{name}: expected three numbers")
    return values[0], values[1], values[2]


def _number(fields: Fields, name: str) -> int | float:
    if isinstance(fields.peek(name), int):
        return fields.get(name, int)
    bits = fields.fields(name).get("bits", str)
    try:
        return struct.unpack(">d", bytes.fromhex(bits))[0]
    except (ValueError, struct.error) as error:
        raise PlanError(f"plan: {fields.place}.{name}: expected 16 hexadecimal digits") from error
