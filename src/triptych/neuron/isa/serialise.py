"""Trace <-> JSON text. The text is the program of a plan: deterministic, so that equal traces have equal digests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any, ClassVar, cast

from triptych.core.checks import Severity
from triptych.core.dtypes import dtype_of
from triptych.core.errors import PlanError, TriptychError
from triptych.core.launches import Finding
from triptych.core.source import SourceLocation
from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.isa.trace import (
    AttributeValue,
    Dynamic,
    Indexing,
    Instruction,
    Operand,
    Pattern,
    Region,
    SharedAttributes,
    Tensor,
    Trace,
    kind_of,
)

SCHEMA = "triptych.neuron-trace/1"


def to_json(trace: Trace) -> str:
    """The trace as JSON text, without blanks."""
    files: dict[str, int] = {}
    texts = _Texts(files)
    programs = ",".join(["[" + ",".join(map(texts.instruction, program)) + "]" for program in trace.programs])
    tensors = ",".join(map(texts.tensor, trace.tensors))
    head: dict[str, object] = {
        "schema": SCHEMA,
        "kernel": trace.kernel,
        "target": trace.target,
        "generation": trace.generation,
        "grid": trace.grid,
    }
    middle: dict[str, object] = {"arguments": trace.arguments, "outputs": trace.outputs}
    tail: dict[str, object] = {
        "notices": [_notice(finding, files) for finding in trace.notices],
        "lenient": trace.lenient,
        "files": list(files),
    }
    parts = (_dumped(head)[1:-1], f'"tensors":[{tensors}]', _dumped(middle)[1:-1], f'"programs":[{programs}]')
    return f"{{{','.join(parts)},{_dumped(tail)[1:]}"


_dumped = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


_MOST_SHARED = 1 << 12


class _Texts:
    """Instructions as JSON text, put together of parts that most of them share."""

    # What says the same in every trace.
    _patterns: ClassVar[dict[Pattern, str]] = {}
    _attributes: ClassVar[dict[object, str]] = {}
    _tensors: ClassVar[dict[object, str]] = {}
    _engines: ClassVar[Mapping[int, str]] = {id(engine): _dumped(engine.value) for engine in Engine}

    def __init__(self, files: dict[str, int]) -> None:
        self._files = files
        self._frames: dict[object, tuple[str, str]] = {}
        for shared in (self._patterns, self._attributes, self._tensors):
            if len(shared) > _MOST_SHARED:
                shared.clear()

    def instruction(self, one: Instruction) -> str:
        key = (one.operation, id(one.engine), id(one.attributes), id(one.where))
        frame = self._frames.get(key)
        if frame is None:
            frame = self._frame(one)
            if type(one.attributes) is SharedAttributes:
                self._frames[key] = frame
        operands: list[str] = []
        for name, operand in one.operands.items():
            if (
                type(operand) is Region
                and operand.dynamic is None
                and (pattern := self._patterns.get(operand.pattern)) is not None
            ):
                operands.append(f'"{name}":{{"tensor":{operand.tensor},"offset":{operand.offset},"pattern":{pattern}}}')
            else:
                operands.append(f'"{name}":{self._operand(operand)}')
        begin, end = frame
        return begin + ",".join(operands) + end

    def _frame(self, one: Instruction) -> tuple[str, str]:
        """What stands before and behind the operands."""
        file, line = _place(one.where, self._files)
        attributes = self._attribute_text(one.attributes)
        return f'["{one.operation}",{self._engines[id(one.engine)]},{{', f"}},{attributes},[{file},{line}]]"

    def tensor(self, one: Tensor) -> str:
        """Its name before what tiles of a kind share; a tensor that says more is written alone."""
        if one.strides or one.origin or one.where is not None or one.alias is not None or one.address is not None:
            return _dumped(_tensor(one, self._files))
        key = (
            id(one.space), one.dtype.name, one.partitions, one.free, one.shape,
            one.zeroed, one.shared, one.start, one.blocks,
        )  # fmt: skip
        rest = self._tensors.get(key)
        if rest is None:
            rest = self._tensors[key] = _dumped(_tensor(replace(one, name=""), self._files)).removeprefix('{"name":""')
        return f'{{"name":{_dumped(one.name)}{rest}'

    def _operand(self, operand: Operand) -> str:
        if not isinstance(operand, Region):
            return _dumped(_value(operand))
        pattern = self._patterns.get(operand.pattern)
        if pattern is None:
            pattern = self._patterns[operand.pattern] = _dumped(operand.pattern)
        text = f'{{"tensor":{operand.tensor},"offset":{operand.offset},"pattern":{pattern}'
        one = operand.dynamic
        if one is None:
            return text + "}"
        skip = _dumped(one.skip)
        return f'{text},"dynamic":["{one.kind.value}",{self._operand(one.index)},{one.step},{one.extent},{skip}]}}'

    def _attribute_text(self, attributes: Mapping[str, AttributeValue]) -> str:
        values = attributes.values()
        key = (*attributes, *values, *map(kind_of, values))  # 1, 1.0 and True are written differently
        found = self._attributes.get(key)
        if found is None:
            found = self._attributes[key] = _dumped({name: _value(value) for name, value in attributes.items()})
        return found


def from_json(text: str) -> Trace:
    """The trace of a JSON text; its instructions are not verified yet.

    Raises:
        PlanError: for text that is no trace.
    """
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise PlanError(f"a Neuron trace of schema {document['schema']!r}; expected {SCHEMA!r}")
        files = [str(name) for name in document["files"]]
        return Trace(
            str(document["kernel"]),
            str(document["target"]),
            str(document["generation"]),
            _integers(document["grid"]),
            tuple(_read_tensor(row, files) for row in document["tensors"]),
            _integers(document["arguments"]),
            _integers(document["outputs"]),
            tuple(tuple(_read_instruction(row, files) for row in program) for program in document["programs"]),
            tuple(_read_notice(row, files) for row in document["notices"]),
            bool(document["lenient"]),
        )
    except (LookupError, TypeError, ValueError, OverflowError, RecursionError, AttributeError, TriptychError) as error:
        if isinstance(error, PlanError):
            raise
        raise PlanError(f"a damaged Neuron trace: {type(error).__name__}: {error}") from error


def _place(where: SourceLocation, files: dict[str, int]) -> list[int]:
    return [files.setdefault(where.file, len(files)), where.line]


def _read_place(row: list[int], files: list[str]) -> SourceLocation:
    return SourceLocation(files[row[0]], int(row[1]))


def _read_instruction(row: list[Any], files: list[str]) -> Instruction:
    operation, engine, operands, attributes, where = row
    return Instruction(
        str(operation),
        Engine(engine),
        {name: _read_operand(operand) for name, operand in operands.items()},
        {name: _read_value(value) for name, value in attributes.items()},
        _read_place(where, files),
    )


def _read_dynamic(row: list[Any] | None) -> Dynamic | None:
    if row is None:
        return None
    kind, index, step, extent, skip = row
    region = _read_operand(index)
    if not isinstance(region, Region) or region.dynamic is not None:
        raise PlanError("a damaged Neuron trace: a dynamic index is no plain region")
    return Dynamic(Indexing(kind), region, int(step), int(extent), bool(skip))


def _read_operand(row: object) -> Operand:
    if isinstance(row, Mapping) and "tensor" in row:
        fields = cast("Mapping[str, Any]", row)
        pattern = tuple((int(step), int(count)) for step, count in fields["pattern"])
        return Region(int(fields["tensor"]), int(fields["offset"]), pattern, _read_dynamic(fields.get("dynamic")))
    return float(cast("float", _read_value(cast("object", row))))


def _value(value: AttributeValue) -> object:
    """JSON has no infinities: they travel as `{"float": "inf"}`."""
    if isinstance(value, tuple):
        return [_value(part) for part in value]
    if isinstance(value, float) and not isfinite(value):
        return {"float": repr(value)}
    return value


def _read_value(value: object) -> AttributeValue:
    if isinstance(value, list):
        return tuple(_read_value(part) for part in cast("list[object]", value))
    if isinstance(value, Mapping):
        return float(cast("Mapping[str, str]", value)["float"])
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise PlanError(f"a damaged Neuron trace: {value!r} is no attribute")


def _tensor(tensor: Tensor, files: dict[str, int]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": tensor.name,
        "space": tensor.space.value,
        "dtype": tensor.dtype.name,
        "partitions": tensor.partitions,
        "free": tensor.free,
        "shape": tensor.shape,
    }
    optional: dict[str, object] = {
        "strides": tensor.strides,
        "origin": tensor.origin,
        "zeroed": tensor.zeroed,
        "shared": tensor.shared,
        "start": tensor.start,
        "blocks": tensor.blocks if tensor.blocks > 1 else 0,
    }
    optional["where"] = tensor.where and _place(tensor.where, files)
    row |= {name: value for name, value in optional.items() if value}
    return row | {name: value for name in ("alias", "address") if (value := getattr(tensor, name)) is not None}


def _read_tensor(row: Mapping[str, Any], files: list[str]) -> Tensor:
    return Tensor(
        str(row["name"]),
        Space(row["space"]),
        dtype_of(str(row["dtype"])),
        int(row["partitions"]),
        int(row["free"]),
        _integers(row["shape"]),
        _integers(row.get("strides", ())),
        int(row.get("origin", 0)),
        bool(row.get("zeroed", False)),
        bool(row.get("shared", False)),
        _read_place(row["where"], files) if "where" in row else None,
        int(row["alias"]) if "alias" in row else None,
        int(row["address"]) if "address" in row else None,
        int(row.get("start", 0)),
        int(row.get("blocks", 1)),
    )


def _notice(finding: Finding, files: dict[str, int]) -> list[Any]:
    where = None if finding.where is None else _place(finding.where, files)
    return [finding.check, finding.severity.value, finding.message, where]


def _read_notice(row: list[Any], files: list[str]) -> Finding:
    check, severity, message, where = row
    place = None if where is None else _read_place(where, files)
    return Finding(str(check), Severity(severity), str(message), place)


def _integers(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)
