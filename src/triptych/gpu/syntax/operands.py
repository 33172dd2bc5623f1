"""Operands of instructions."""

from __future__ import annotations

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.syntax.ast import (
    Address,
    AddressList,
    FloatBits,
    Group,
    Integer,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Vector,
)
from triptych.gpu.syntax.literals import PRECEDENCE, parse_constant, parse_integer
from triptych.gpu.syntax.names import Scopes, is_special
from triptych.gpu.syntax.tokens import NAME_START, Tokens

SINK = Sink()


class OperandParser:
    """Parses the operands of one function's instructions; notes names that the module must declare."""

    def __init__(self, tokens: Tokens, scopes: Scopes, unresolved: dict[str, int]) -> None:
        """`unresolved` receives each name that is not the function's own, and the place of its first use."""
        self.tokens = tokens
        self.scopes = scopes
        self.unresolved = unresolved

    def parse(self, *, groups: bool = False) -> Operand:
        """Pass one operand; with `groups`, parentheses hold the arguments of a call."""
        first = self._parse_single(groups=groups)
        if self.tokens.peek() != "|":
            return first
        if not isinstance(first, Register | Sink):
            raise self.tokens.error("'|' joins a destination register and a predicate")
        self.tokens.take()
        return Pair(first, self._parse_single(groups=False))

    def _parse_single(self, *, groups: bool) -> Operand:
        tokens = self.tokens
        token = tokens.peek()
        if not token:
            raise tokens.expected("an operand")
        if token == "_":
            tokens.take()
            return SINK
        if token[0] in NAME_START and token != "WARP_SZ":
            return self._parse_name()
        match token:
            case "[":
                return self._parse_address()
            case "{":
                return Vector(self._parse_list("{", "}"))
            case "(" if groups:
                return Group(self._parse_list("(", ")"))
            case "!":
                tokens.take()
                return Not(self.take_register("a predicate after '!'"))
            case _:
                return parse_constant(tokens, "an operand")

    def take_register(self, what: str) -> Register:
        """Pass a register."""
        at = self.tokens.at
        operand = self._parse_name() if self.tokens.peek()[:1] in NAME_START else None
        if not isinstance(operand, Register):
            raise self.tokens.expected(what, at)
        return operand

    def _parse_name(self) -> Operand:
        operand = self.resolve(self.tokens.at)
        self.tokens.take()
        if isinstance(operand, Symbol) and self.tokens.peek() in ("+", "-"):
            return Symbol(operand.name, parse_integer(self.tokens, "an offset"))
        return operand

    def resolve(self, index: int) -> Operand:
        """What the name at a token means; it is kept in the scope, so that the next use finds it at once."""
        tokens, names = self.tokens, self.scopes.names
        name = tokens.texts[index]
        if (known := names.get(name)) is not None:
            return known
        if name == "_":
            operand: Operand = SINK
        elif name == "WARP_SZ":
            operand = Integer(WARP_SIZE)
        elif is_special(name):
            operand = Register(name)
        elif name[0] == "%" or "." in name:
            base, _, selector = name.partition(".")
            if selector and isinstance(names.get(base), Register):
                before = (text for text in reversed(tokens.texts[:index]) if text[:1].isalpha() and "." in text)
                what = f"the selector '.{selector}' of register '{base}'"
                raise tokens.error(f"'{next(before, name)}': {what} is not supported", index)
            raise tokens.error(f"undeclared register '{name}'", index, "declare it with .reg")
        elif ":" in name:
            raise tokens.expected("an operand", index)
        else:
            self.unresolved.setdefault(name, index)
            operand = Symbol(name)
        names[name] = operand
        return operand

    def _parse_list(self, opening: str, closing: str) -> tuple[Operand, ...]:
        """Pass a list of simple operands: a list holds no list and no address."""
        tokens = self.tokens
        tokens.expect(opening)
        elements: list[Operand] = []
        if tokens.accept(closing):
            return ()
        while True:
            if tokens.peek() in ("{", "[", "("):
                raise tokens.expected(f"an element of '{opening}…{closing}'")
            elements.append(self._parse_single(groups=False))
            if tokens.accept(closing):
                return tuple(elements)
            if not tokens.accept(","):
                raise tokens.expected(f"',' or '{closing}'")

    def _parse_address(self) -> Address | AddressList:
        tokens = self.tokens
        tokens.expect("[")
        first = self._parse_based()
        if tokens.accept("]"):
            return first
        elements: list[Operand] = [first if first.offset else first.base]
        while tokens.accept(","):
            if tokens.peek() == "{":
                elements.append(Vector(self._parse_list("{", "}")))
            else:
                based = self._parse_based()
                elements.append(based if based.offset else based.base)
        tokens.expect("]", "after an address")
        return AddressList(tuple(elements))

    def _parse_based(self) -> Address:
        """Pass `base+offset`."""
        tokens = self.tokens
        at = tokens.at
        token = tokens.peek()
        if token[:1] not in NAME_START or token == "WARP_SZ":
            value = parse_constant(tokens, "an address")
            if isinstance(value, FloatBits):
                raise tokens.expected("an address", at)
            return Address(value)
        base = self.resolve(at)
        tokens.take()
        if not isinstance(base, Register | Symbol):
            raise tokens.expected("a register or a variable as the address", at)
        offset = 0
        while tokens.peek() in ("+", "-"):
            offset += self._parse_term()
        if not -(1 << 63) <= offset < 1 << 64:
            raise tokens.error(f"the offset {offset} does not fit in 64 bits", at)
        return Address(base, offset)

    def _parse_term(self) -> int:
        """Pass `+8`, `-8` or `+-8`."""
        tokens = self.tokens
        sign = -1 if tokens.take() == "-" else 1
        start = tokens.at
        value = parse_constant(tokens, "an offset", lowest=PRECEDENCE["*"])
        if isinstance(value, FloatBits):
            raise tokens.expected("an offset", start)
        return sign * value.value
