"""Functions of `nki.isa` in both calling styles: destination passing, and Beta 1's, which returns a new tile.

A function is written once, in destination-passing form. Where its arguments are its row's operands and attributes, its
signature and its meaning in a sentence are all there is to write:

    @declaration(columns("src", 8))
    def max8(dst: NkiTensor, src: NkiTensor) -> None:
        'dst = the 8 largest elements of each partition, descending.'

What an annotation says decides how an argument is recorded (`_RECORDED`); an argument that the row has not must be left
at its default. A function that must work on its arguments first has a body and is an `@instruction`. Of both, the other
form is derived: no `dst`, and `dtype=` and `mask=` as keywords; the decorator's argument says which tile it makes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from types import BuiltinFunctionType, FunctionType
from typing import Any, cast

import numpy as np

from triptych.core.errors import UnsupportedFeature
from triptych.languages.calling import author_location
from triptych.languages.nki.isa_functions.enums import chosen_engine, engine
from triptych.languages.nki.isa_functions.operands import Result, command_name, operand
from triptych.languages.nki.language_functions.elementwise import is_number
from triptych.languages.nki.tracing.dtypes import nki_dtype
from triptych.languages.nki.tracing.forms import attributes_of
from triptych.languages.nki.tracing.indexing import access_pattern, number, refuse, whole_numbers
from triptych.languages.nki.tracing.operations import Marker, alu_name, function_name, is_marker
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import TileOrNumber, Tracer, current
from triptych.neuron.isa import ROWS, Engine
from triptych.neuron.isa.alu import ALU
from triptych.neuron.isa.trace import BETA1, AttributeValue

Write = Callable[..., int | None]

_KEYWORD = inspect.Parameter.KEYWORD_ONLY


class NkiInstruction:
    """A handle of an instruction that was recorded."""

    __slots__ = ("index",)

    def __init__(self, index: int | None) -> None:
        """`index` is its place in the trace, None where a mask let nothing through."""
        self.index = index

    def depends_on(self, *producers: NkiInstruction) -> NkiInstruction:
        """Orders it behind others, which instructions here are anyway: they run in the order of the source."""
        for one in producers:
            if not isinstance(one, NkiInstruction):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise refuse(f"depends_on({one!r}): expected what a function of nki.isa returned")
        return self


class IsaFunction:
    """An instruction's function: call it with `dst`, or (Beta 1, mixed style) without, for a new tile."""

    def __init__(self, write: Write, result: Result | None, legacy: Callable[..., NkiTensor] | None) -> None:
        """`write` is the destination-passing form; `legacy` stands in where the other differs in more than `dst`."""
        self.__name__ = write.__name__
        self.__doc__ = write.__doc__
        self.__wrapped__ = write
        self._write = write
        self._result = result
        self._legacy = legacy
        self._label = f"nisa.{write.__name__}"
        self._passed: set[tuple[str, ...]] = set()
        """The keywords of calls that the destination-passing form takes as they are."""
        self._current = _Signature(inspect.signature(write))
        self._beta1 = _Signature(
            inspect.signature(legacy) if legacy is not None else _without_dst(self._current.signature)
        )

    def __call__(self, *args: object, **kwargs: object) -> Any:  # noqa: ANN401  # by the generation and the arguments
        """Record the instruction: `import nki` returns a handle of it, Beta 1's form the tile that it makes.

        Raises:
            NkiError: (and its kinds) for arguments that the function does not take, or a broken rule of the hardware.
        """
        tracer = current(self._label)
        if not args and tuple(kwargs) in self._passed:
            return NkiInstruction(self._write(**kwargs))
        if "name" in kwargs and "name" not in self._current.parameters:
            name = kwargs.pop("name")
            if name is not None:
                tracer.note_name(name)
        if self._result is None and self._legacy is None:
            return self._pass_destination(args, kwargs)
        if tracer.generation == BETA1 and "dst" not in kwargs:
            bound = self._bind(self._beta1, args, kwargs)
            return self._return_tile(tracer, bound)
        if self._has_destination(args, kwargs):
            return self._pass_destination(args, kwargs)
        bound = self._bind(self._beta1, args, kwargs)
        tracer.note_legacy(f"nisa.{self.__name__} without dst")
        return self._return_tile(tracer, bound)

    def _has_destination(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
        """Whether the call can only mean the destination-passing form."""
        if "dst" in kwargs:
            return True
        current = self._current.given(args, kwargs)
        if current is not None and self._current.has_its_tiles(current):
            return True
        beta1 = self._beta1.given(args, kwargs)
        if beta1 is not None and self._beta1.has_its_tiles(beta1):
            return False
        return current is not None or beta1 is None  # neither fits: the error is to speak of the form that is nearer

    def _bind(self, signature: _Signature, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, Any]:
        try:
            return signature.bind(args, kwargs)
        except TypeError as error:
            raise refuse(f"nisa.{self.__name__}: {error}", f"its arguments are {_names(signature)}") from None

    def _pass_destination(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> NkiInstruction:
        if "dtype" in kwargs and "dtype" not in self._current.parameters:
            kwargs = self._without_dtype(kwargs)
        recorded = self._write(**self._bind(self._current, args, kwargs))
        if not args and "dst" in kwargs and "name" not in kwargs:
            self._passed.add(tuple(kwargs))
        return NkiInstruction(recorded)

    def _without_dtype(self, kwargs: Mapping[str, object]) -> Mapping[str, object]:
        """The first `import nki` took a dtype beside `dst`, whose own it is."""
        target, dtype = kwargs.get("dst"), kwargs["dtype"]
        if not isinstance(target, NkiTensor) or nki_dtype(dtype) != target.dtype:
            return kwargs
        current(self._label).note_legacy(f"{self._label} with dst and dtype")
        return {name: one for name, one in kwargs.items() if name != "dtype"}

    def _return_tile(self, tracer: Tracer, bound: dict[str, Any]) -> NkiTensor:
        if self._legacy is not None:
            return self._legacy(**bound)
        assert self._result is not None
        dtype, mask = bound.pop("dtype"), bound.pop("mask")
        target = self._result(tracer, bound, dtype)
        target.producer = self._write(dst=target, **bound, mask=mask)
        return target


class _Signature:
    """A signature that binds most calls at once, where `inspect` goes through its parameters."""

    def __init__(self, signature: inspect.Signature) -> None:
        self.signature = signature
        self.parameters = dict(signature.parameters)
        kinds = {one.kind for one in self.parameters.values()}
        self._plain = kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, _KEYWORD}
        self._positional = [name for name, one in self.parameters.items() if one.kind is not _KEYWORD]
        defaults = {name: one.default for name, one in self.parameters.items()}
        self._defaults = {name: one for name, one in defaults.items() if one is not inspect.Parameter.empty}
        self._required = self.parameters.keys() - self._defaults.keys()
        annotated = {name: str(one.annotation).split(" | ") for name, one in self.parameters.items()}
        self._tiles = {name: kinds for name, kinds in annotated.items() if "NkiTensor" in kinds}

    def bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, Any]:
        """All arguments by name.

        Raises:
            TypeError: for arguments that the signature does not take.
        """
        given = self._by_name(args, kwargs)
        if given is not None:
            return {**self._defaults, **given}
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def given(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Mapping[str, object] | None:
        """The arguments by name; None where the signature does not take them."""
        try:
            return self._by_name(args, kwargs) or self.signature.bind(*args, **kwargs).arguments
        except TypeError:
            return None

    def has_its_tiles(self, given: Mapping[str, object]) -> bool:
        """Whether each argument that is annotated as a tile is one, or the number or None that may stand for it."""
        for name, kinds in self._tiles.items():
            value = given.get(name)
            if name in given and not (
                isinstance(value, NkiTensor)
                or (value is None and "None" in kinds)
                or ("float" in kinds and is_number(value))
            ):
                return False
        return True

    def _by_name(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Mapping[str, object] | None:
        """The arguments by name, where each is named once and none is missing; `inspect` knows the other cases."""
        if not self._plain or len(args) > len(self._positional):
            return None
        given = {**dict(zip(self._positional, args, strict=False)), **kwargs} if args else kwargs
        once = len(given) == len(args) + len(kwargs)
        return given if once and given.keys() <= self.parameters.keys() and self._required <= given.keys() else None


def _without_dst(signature: inspect.Signature) -> inspect.Signature:
    kept = [one for name, one in signature.parameters.items() if name not in ("dst", "mask")]
    added = [inspect.Parameter(name, _KEYWORD, default=None) for name in ("dtype", "mask")]
    return signature.replace(parameters=[*kept, *added])


def _names(signature: _Signature) -> str:
    return ", ".join(name for name in signature.parameters)


def instruction(
    result: Result | None = None, *, legacy: Callable[..., NkiTensor] | None = None
) -> Callable[[Write], IsaFunction]:
    """Make a destination-passing function one that can be called in both styles; see the module's docstring."""
    return lambda write: IsaFunction(write, result, legacy)


Operation = Callable[..., Any]
"""An argument that names an operation of the engines: `nl.add`, `np.add`."""
Function = Callable[..., Any]
"""An argument that names an activation function: `nl.exp`, `np.exp`."""


Stage = Callable[..., Any]
"""An argument that names an operation, or `nl.bypass` for none."""
Activation = Callable[..., Any]
"""An argument that names an activation function, `nl.prelu` too."""


def _whole(value: object, name: str) -> int:
    if isinstance(value, bool) or not is_number(value) or number(value) % 1 != 0:  # of NaN and infinities it is NaN
        raise refuse(f"{name}={value!r}: expected a whole number")
    return int(cast("int", value))


_RECORDED: Mapping[str, Callable[[object, str], AttributeValue]] = {
    "Operation": lambda value, name: alu_name(value),
    "Operation | None": lambda value, name: None if value is None else alu_name(value),
    "Function": lambda value, name: function_name(value),
    "reduce_cmd": command_name,
    "int | None": lambda value, name: None if value is None else _whole(value, name),
    "Stage": lambda value, name: "bypass" if is_marker(value, "bypass") else alu_name(value),
    "Activation": lambda value, name: "prelu" if is_marker(value, "prelu") else function_name(value),
    "bool": lambda value, name: bool(value),
    "int": _whole,
    "Sequence[int]": whole_numbers,
    "Sequence[Sequence[int]]": access_pattern,
}
"""How the value of an attribute is recorded, by the annotation of the argument."""


_BETA1_ON_SCALAR = frozenset({"tensor_copy", "tensor_scalar"})
"""What Beta 1's compiler gives the Scalar engine where no engine is named and it can. Source: the engines' times in
NKIBench's profiles of Trainium; `nl.copy` moved to the Vector engine in NKI 0.6."""


@functools.lru_cache(1024)
def able_engine(name: str, operations: tuple[AttributeValue, ...], generation: str) -> Engine:
    """The first engine of the row `name` that has all the operations; verification refuses those that none has."""
    row = ROWS[name]
    engines = row.engines
    if generation == BETA1 and name in _BETA1_ON_SCALAR:
        engines = (Engine.SCALAR, *engines)
    known = [ALU[name] for name in operations if isinstance(name, str) and name in ALU]
    return next((one for one in engines if all(one in each.engines for each in known)), row.engines[0])


def _refuse_all_but_defaults(function: str, given: Mapping[str, object], defaults: Mapping[str, object]) -> None:
    """Arguments that the language has and the row has not must be as they are by default."""
    for name, default in defaults.items():
        value = given[name]
        if value is not default and not (is_number(value) and is_number(default) and value == default):
            raise UnsupportedFeature(f"nisa.{function}({name}={value!r}) is not implemented", where=author_location())


_MOST_KNOWN = 1 << 12


@functools.lru_cache(1024)
def _are_plain(kinds: tuple[type, ...]) -> bool:
    """Whether equal arguments of these types mean the same: they are a key with their types."""
    return all(issubclass(one, _PLAIN) for one in kinds)


_PLAIN = (str, int, Enum, Marker, type(None), FunctionType, BuiltinFunctionType, np.ufunc)


def _recorder(declared: Callable[..., None]) -> Write:
    """The function that records the instruction of the row of its name from arguments named as in the row."""
    name = declared.__name__
    row = ROWS[name]
    signature = inspect.signature(declared)
    parameters = signature.parameters
    renamed = {"op": "function"} if "function" in row.attributes else {}
    kinds = {one: str(parameters[one].annotation) for one in parameters if renamed.get(one, one) in row.attributes}
    assert set(kinds.values()) <= set(_RECORDED), f"{name}: {kinds}"
    operands = {one: f"nisa.{name}: {one}" for one in parameters if row.rule(one) is not None}
    handled = {*kinds, *operands, "engine"}
    others = {one: parameter.default for one, parameter in parameters.items() if one not in handled}
    recorded = [
        (one, target := renamed.get(one, one), _RECORDED[kind], f"nisa.{name}: {one}", row.attributes[target].optional)
        for one, kind in kinds.items()
    ]
    operations = [renamed.get(one, one) for one, kind in kinds.items() if kind.startswith("Operation")]

    defaults = {one: parameter.default for one, parameter in parameters.items()}
    decisive = [(one, default) for one, default in defaults.items() if one not in operands]
    tiles_of = [(one, defaults[one], label) for one, label in operands.items()]
    known: dict[object, tuple[Mapping[str, AttributeValue], Engine]] = {}

    def decided(given: Mapping[str, object], generation: str) -> tuple[Mapping[str, AttributeValue], Engine]:
        if others:
            _refuse_all_but_defaults(name, given, others)
        attributes: dict[str, AttributeValue] = {}
        for one, target, record, label, optional in recorded:
            value = record(given[one], label)
            if value is not None or optional:
                attributes[target] = value
        chosen = chosen_engine(given.get("engine", engine.unknown))
        if chosen is None:
            chosen = able_engine(name, tuple([attributes.get(one) for one in operations]), generation)
        return attributes_of(name, attributes), chosen

    @functools.wraps(declared)
    def write(mask: object = None, **given: object) -> int | None:
        tracer = current()
        values = [given.get(one, default) for one, default in decisive]
        key = (tracer.generation, *map(type, values), *values)
        try:
            found = known.get(key)
        except TypeError:  # no key: a list, say
            found = None
        if found is None:
            found = decided({**defaults, **given}, tracer.generation)
            if _are_plain(tuple(map(type, values))) and len(known) < _MOST_KNOWN:
                known[key] = found
        tiles: dict[str, TileOrNumber | None] = {}
        for one, default, label in tiles_of:
            value = given.get(one, default)
            tiles[one] = value if type(value) is NkiTensor else operand(value, label)
        return tracer.emit(name, tiles, found[0], engine=found[1], mask=mask)

    masked = inspect.Parameter("mask", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation="object")
    vars(write)["__signature__"] = signature.replace(parameters=[*parameters.values(), masked])
    return write


def declaration(
    result: Result | None = None, *, legacy: Callable[..., NkiTensor] | None = None
) -> Callable[[Callable[..., None]], IsaFunction]:
    """Make a signature without a body the function of the row of its name; see the module's docstring."""
    return lambda declared: IsaFunction(_recorder(declared), result, legacy)
