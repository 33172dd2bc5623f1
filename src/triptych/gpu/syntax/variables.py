"""Declarations of variables and parameters."""

from __future__ import annotations

import math

from triptych.gpu.syntax.ast import Variable
from triptych.gpu.syntax.initialisers import parse_initial
from triptych.gpu.syntax.literals import parse_integer
from triptych.gpu.syntax.tokens import Tokens

TYPE_BYTES = {
    **dict.fromkeys(("b8", "u8", "s8", "pred"), 1),
    **dict.fromkeys(("b16", "u16", "s16", "f16", "bf16"), 2),
    **dict.fromkeys(("b32", "u32", "s32", "f32", "f16x2", "bf16x2"), 4),
    **dict.fromkeys(("b64", "u64", "s64", "f64", "texref", "samplerref", "surfref"), 8),
    "b128": 16,
}
"""Bytes of a variable of each fundamental type; opaque types are held as handles of 64 bits."""
SPACES = frozenset((".global", ".const", ".shared", ".local", ".param", ".reg", ".tex"))
POINTER_SPACES = frozenset((".global", ".const", ".shared", ".local", ".param"))
VECTOR_WIDTHS = {".v2": 2, ".v4": 4, ".v8": 8}
MOST_INITIALISED_BYTES = 1 << 28
"""The largest variable whose initial value is kept; a device's constant and code memory is far smaller."""
MOST_BYTES = 1 << 48


def size_of(variable: Variable) -> int:
    """Bytes of a variable."""
    return (1 if variable.count is None else variable.count) * TYPE_BYTES[variable.type]


def parse_variables(tokens: Tokens, space: str, linkage: str) -> list[Variable]:
    """Pass a declaration up to and with its `;`; the token of the state space is passed."""
    head = _Head(tokens, space, linkage)
    declared = [head.parse_declarator()]
    while tokens.accept(","):
        declared.append(head.parse_declarator())
    tokens.expect(";", "after a declaration")
    return declared


def parse_parameters(tokens: Tokens) -> tuple[Variable, ...]:
    """Pass a parenthesised list of parameters or results; the `(` is passed."""
    parameters: list[Variable] = []
    if tokens.accept(")"):
        return ()
    while True:
        if not (tokens.accept(".param") or tokens.accept(".reg")):
            raise tokens.expected("'.param'")
        space = tokens.texts[tokens.at - 1][1:]
        parameters.append(_Head(tokens, space, "").parse_declarator())
        if tokens.accept(")"):
            return tuple(parameters)
        tokens.expect(",", "between parameters")


class _Head:
    """What stands before the names of a declaration: type, alignment, vector width, `.ptr`."""

    def __init__(self, tokens: Tokens, space: str, linkage: str) -> None:
        self.tokens = tokens
        self.space = space
        self.linkage = linkage
        self.type = ""
        self.width = 1
        self.align = 0
        self.is_pointer = False
        while tokens.peek().startswith("."):
            self._parse_attribute(tokens.take())
        if not self.type:
            raise tokens.expected("a type such as '.b32'")

    def _parse_attribute(self, token: str) -> None:
        tokens = self.tokens
        if token == ".align":
            align = parse_integer(tokens, "an alignment")
            if align <= 0 or align & (align - 1):
                raise tokens.error(f"an alignment of {align}; expected a power of two", tokens.at - 1)
            if not self.is_pointer:
                self.align = align
        elif token[1:] in TYPE_BYTES and not self.type:
            self.type = token[1:]
        elif token == ".ptr" and self.space == "param" and self.type:
            self.is_pointer = True
        elif token in VECTOR_WIDTHS and self.space != "reg":
            self.width = VECTOR_WIDTHS[token]
        elif token == ".attribute":
            _skip_parentheses(tokens)
        elif not (token in POINTER_SPACES and self.is_pointer):
            raise tokens.expected("a type, an alignment or a name", tokens.at - 1)

    def parse_declarator(self) -> Variable:
        """Pass a name with its dimensions and initial value."""
        tokens = self.tokens
        line = tokens.line()
        name = tokens.take_name("a variable's name")
        dimensions = self._parse_dimensions()
        element_bytes = TYPE_BYTES[self.type]
        count = math.prod(dimensions) if dimensions else None
        if (count or 1) * self.width * element_bytes > MOST_BYTES:
            raise tokens.error(f"'{name}' has more than {MOST_BYTES} bytes")
        initial, references = None, ()
        if self.width > 1:
            count = (count or 1) * self.width if count != 0 else 0
            dimensions = [*dimensions, self.width]
        if tokens.accept("="):
            initial, references = parse_initial(tokens, self.type, element_bytes, dimensions)
            count = len(initial) // element_bytes if count == 0 else count
            size = (count or 1) * element_bytes
            if size > MOST_INITIALISED_BYTES:
                raise tokens.error(f"'{name}' has an initial value and more than {MOST_INITIALISED_BYTES} bytes")
            initial = initial.ljust(size, b"\0")
        return Variable(
            name=name,
            space=self.space,
            type=self.type,
            align=self.align or element_bytes * self.width,
            count=count,
            initial=initial,
            references=references,
            linkage=self.linkage,
            is_pointer=self.is_pointer,
            line=line,
        )

    def _parse_dimensions(self) -> list[int]:
        tokens = self.tokens
        dimensions: list[int] = []
        while tokens.accept("["):
            if tokens.accept("]"):
                if dimensions:
                    raise tokens.error("only the first dimension of an array may be left open", tokens.at - 1)
                dimensions.append(0)
                continue
            size = parse_integer(tokens, "the size of an array")
            if size < 0:
                raise tokens.error(f"an array of {size} elements", tokens.at - 1)
            dimensions.append(size)
            tokens.expect("]", "after the size of an array")
        return dimensions


def _skip_parentheses(tokens: Tokens) -> None:
    tokens.expect("(", "after '.attribute'")
    while not tokens.accept(")"):
        if tokens.take() in ("", ";", "{", "}"):
            raise tokens.expected("')' after '.attribute('", tokens.at - 1)
