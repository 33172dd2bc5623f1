"""Functions of a random module: their parameters, their bodies, and the statements that call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from accesses import Accesses
from control import Author, Context
from grammar import Routine, Statement, plain
from operands import Source
from places import SLOT_BYTES, Shape
from register_classes import CLASSES, declarations

from triptych.gpu.isa.types import TYPES

_PASSED = ("r", "d", "f", "e", "h")
_POINTERS = ("%b0", "%b2", "%b9", "%b4")
"""What every function is given besides: the places of the thread follow from these."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The classes of what a function gives and takes."""

    results: tuple[str, ...]
    parameters: tuple[str, ...]

    def declare(self, name: str) -> str:
        """The head of a function."""
        results = ", ".join(f".param .{CLASSES[one].type} o{i}" for i, one in enumerate(self.results))
        taken = [f".param .b64 i{i}" for i in range(len(_POINTERS))]
        taken += [f".param .{CLASSES[one].type} a{i}" for i, one in enumerate(self.parameters)]
        return f".func ({results}) {name}({', '.join(taken)})" if results else f".func {name}({', '.join(taken)})"


def random_signature(source: Source, *, recursive: bool) -> Signature:
    """Any; the first parameter of a function that calls itself is how often."""
    results = tuple(source.random.choice(_PASSED) for _ in range(source.random.randrange(2)))
    taken = tuple(source.random.choice(_PASSED) for _ in range(source.random.randrange(4)))
    return Signature(results, ("r", *taken) if recursive else taken)


def initial_values(source: Source, given: Sequence[str], place: str) -> list[str]:
    """Lines that give every register a value: uniform, ascending with the lanes, or neither.

    `given`: registers that have one already. `place` is a register with the address of 256 readable bytes.
    """
    lines: list[str] = []
    for letter, one in CLASSES.items():
        names = [name for name in one.names if name not in given]
        if letter == "p":
            for number, name in enumerate(names):
                lines += [f"and.b32 %x0, %t{number % 2}, {1 << number};", f"setp.eq.u32 {name}, %x0, 0;"]
            continue
        for index, size in _pieces(len(names), 4 if one.bits <= 32 else 2):
            offset = size * one.bits // 8 * source.random.randrange(256 // (size * one.bits // 8))
            held = ", ".join(names[index : index + size])
            text = f".v{size}.b{one.bits} {{{held}}}" if size > 1 else f".b{one.bits} {held}"
            lines.append(f"ld.global{text}, [{place}+{offset}];")
    for name in ("%r0", "%r1"):
        if name not in given:
            lines.append(f"mad.lo.u32 {name}, %t0, {source.random.randrange(1, 9)}, {source.random.randrange(64)};")
    for letter in "rdfeh":
        name, kind = f"%{letter}3", CLASSES[letter].type.replace("b", "u")
        if name not in given and source.chance(0.6):
            lines.append(f"mov.{kind} {name}, {source.literal(TYPES[kind])};")
    return lines


def _pieces(count: int, most: int) -> list[tuple[int, int]]:
    """Vectors of 4, 2 and 1 registers: the first of each, and how many it has."""
    found: list[tuple[int, int]] = []
    start = 0
    while start < count:
        size = most
        while size > count - start:
            size //= 2
        found.append((start, size))
        start += size
    return found


def store_all(place: str) -> tuple[list[str], int]:
    """Lines that store every register from the address in a register on, and the bytes that they take."""
    lines: list[str] = []
    offset = 0
    for letter, one in CLASSES.items():
        names, bits = list(one.names), one.bits
        if letter == "p":
            lines += [f"selp.b32 %x{number}, 1, 0, {name};" for number, name in enumerate(names)]
            names, bits = [f"%x{number}" for number in range(len(names))], 32
        for index, size in _pieces(len(names), 4 if bits <= 32 else 2):
            held = ", ".join(names[index : index + size])
            vector, held = (f".v{size}", f"{{{held}}}") if size > 1 else ("", held)
            lines.append(f"st.global{vector}.b{bits} [{place}+{offset}], {held};")
            offset += 16
    return lines, offset


STORED_BYTES = store_all("")[1]


def fill_local() -> list[str]:
    """Lines that write all of a routine's local array."""
    return [f"st.local.v4.b32 [own+{16 * i}], {{%r{i}, %t0, %r{i + 4}, %r1}};" for i in range(SLOT_BYTES // 16)]


@dataclass(slots=True)
class Functions:
    """Writes the functions of a module, each of which may call those before it."""

    source: Source
    shape: Shape
    accesses: Accesses
    routines: list[Routine]
    calls: list[Callable[[Source], Statement]]

    def write(self, count: int) -> None:
        """Functions of random signatures; two neighbours may share one, and then be called through a pointer."""
        signature, before = None, ""
        self.source.in_function = True
        for number in range(count):
            name, recursive = f"f{number}", self.source.chance(0.3)
            shares = signature is not None and self.source.chance(0.6)
            if signature is None or not shares:
                signature = random_signature(self.source, recursive=recursive)
            recursive = recursive and bool(signature.parameters) and signature.parameters[0] == "r"
            self.routines.append(self._function(name, signature, recursive=recursive))
            self.calls.append(_caller(signature, name))
            if shares:
                self.calls.append(_pointer_caller(signature, before, name))
            before = name
        self.source.in_function = False

    def _function(self, name: str, signature: Signature, *, recursive: bool) -> Routine:
        source = self.source
        start = [*self.shape.lines("i0", "i1", "i2", "i3")]
        given: list[str] = []
        for index, letter in enumerate(signature.parameters):
            register = f"%{letter}{index}"
            given.append(register)
            kind = CLASSES[letter].type
            start.append(f"ld.param{source.random.choice(('', '::func'))}.{kind} {register}, [a{index}];")
        start += [f"and.b32 %t2, {given[0]}, 3;"] if recursive else []
        start += [*initial_values(source, given, "%b0"), *fill_local()]
        author = Author(source, self.shape, self.accesses, tuple(self.calls))
        body = author.body(Context(2, leave="bra END"), 6)
        if recursive:
            body = (*body, _self_call(source, signature, name))
        end = ["END:"]
        for index, letter in enumerate(signature.results):
            kind = CLASSES[letter].type
            end.append(f"st.param{source.random.choice(('', '::func'))}.{kind} [o{index}], {source.of_class(letter)};")
        own = f".local .align 32 .b8 own[{SLOT_BYTES}];"
        return Routine(signature.declare(name), f"{declarations()} {own}", tuple(start), body, (*end, "ret;"))


def _self_call(source: Source, signature: Signature, name: str) -> Statement:
    end = source.label()
    results, arguments = _passed(source, signature)
    arguments[len(_POINTERS)] = "%x0"
    return plain(
        "setp.eq.u32 %q0, %t2, 0;", f"@%q0 bra {end};", "sub.u32 %x0, %t2, 1;",
        _call_text(results, name, arguments), f"{end}:",
    )  # fmt: skip


def _passed(source: Source, signature: Signature) -> tuple[list[str], list[str]]:
    """Registers for the results, all different, and arguments."""
    results: list[str] = []
    for letter in signature.results:
        results.append(next(n for n in source.random.sample(CLASSES[letter].names, 4) if n not in results))
    arguments = [*_POINTERS]
    for letter in signature.parameters:
        literal = source.literal(TYPES[CLASSES[letter].type]) if source.chance(0.15) else None
        arguments.append(literal or source.of_class(letter))
    return results, arguments


def _call_text(results: Sequence[str], target: str, arguments: Sequence[str], rest: str = "") -> str:
    given = f"({', '.join(results)}), " if results else ""
    return f"call {given}{target}, ({', '.join(arguments)}){rest};"


def _caller(signature: Signature, name: str) -> Callable[[Source], Statement]:
    def write(source: Source) -> Statement:
        results, arguments = _passed(source, signature)
        if source.chance(0.5):
            return plain(source.guard(0.3) + _call_text(results, name, arguments))
        return _call_by_variables(source, signature, name, results, arguments)

    return write


def _call_by_variables(
    source: Source, signature: Signature, name: str, results: Sequence[str], arguments: Sequence[str]
) -> Statement:
    """A call as compilers write it: what is passed goes through variables."""
    number = source.label("v")
    kinds = [*["b64"] * len(_POINTERS), *(CLASSES[letter].type for letter in signature.parameters)]
    lines: list[str] = []
    for i, (kind, value) in enumerate(zip(kinds, arguments, strict=True)):
        lines += [f".param .{kind} {number}a{i};", f"st.param.{kind} [{number}a{i}], {value};"]
    lines += [f".param .{CLASSES[letter].type} {number}o{i};" for i, letter in enumerate(signature.results)]
    given = [f"{number}o{i}" for i in range(len(results))]
    lines.append(_call_text(given, name, [f"{number}a{i}" for i in range(len(kinds))]))
    for place, letter, register in zip(given, signature.results, results, strict=True):
        lines.append(f"ld.param.{CLASSES[letter].type} {register}, [{place}];")
    return plain("{", *lines, "}")


def _pointer_caller(signature: Signature, first: str, second: str) -> Callable[[Source], Statement]:
    def write(source: Source) -> Statement:
        results, arguments = _passed(source, signature)
        table = source.label("C")
        return plain(
            f"mov.u64 %y0, {first};", f"@{source.of_class('p')} mov.u64 %y0, {second};",
            f"{table}: .calltargets {first}, {second};", _call_text(results, "%y0", arguments, f", {table}"),
        )  # fmt: skip

    return write
