"""Numbers and constant expressions of PTX."""

from __future__ import annotations

import struct

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.syntax.ast import FloatBits, Integer
from triptych.gpu.syntax.tokens import DEEPEST, Tokens

LOWEST = -(1 << 63)
HIGHEST = (1 << 64) - 1
PRECEDENCE = {"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5, "*": 6, "/": 6}
PREFIXES = {"x": (16, 2), "X": (16, 2), "b": (2, 2), "B": (2, 2)}


def read_number(token: str) -> Integer | FloatBits | None:
    """The number that a token writes, None if it is malformed (`0f` with seven digits, `12ab`, more than 64 bits)."""
    if token == "WARP_SZ":
        return Integer(WARP_SIZE)
    if "_" in token or len(token) > 66:
        return None
    kind = token[1:2]
    try:
        if token[0] == "0" and kind in ("f", "F"):
            return FloatBits(int(token[2:], 16), 32) if len(token) == 10 else None
        if token[0] == "0" and kind in ("d", "D"):
            return FloatBits(int(token[2:], 16), 64) if len(token) == 18 else None
        if "." in token or (kind not in PREFIXES and ("e" in token or "E" in token)):
            return FloatBits(int.from_bytes(struct.pack("<d", float(token)), "little"), 64)
        return _read_integer(token)
    except (ValueError, OverflowError):
        return None


def _read_integer(token: str) -> Integer | None:
    digits = token[:-1] if token[-1] == "U" else token
    base, start = 10, 0
    if digits[0] == "0" and len(digits) > 1:
        base, start = PREFIXES.get(digits[1], (8, 1))
    value = int(digits[start:], base)
    return Integer(value) if value <= HIGHEST else None


def parse_integer(tokens: Tokens, what: str) -> int:
    """Pass an integer constant expression and return its value; `what` names it in errors."""
    start = tokens.at
    value = parse_constant(tokens, what)
    if isinstance(value, FloatBits):
        raise tokens.expected(what, start)
    return value.value


def parse_constant(tokens: Tokens, what: str, lowest: int = 1, depth: int = 0) -> Integer | FloatBits:
    """Pass a constant: a number or an expression of integers (`(1<<4)|2`) of operators from `lowest` up."""
    start = tokens.at
    value = _parse_primary(tokens, what, depth)
    while (precedence := PRECEDENCE.get(tokens.peek(), 0)) >= lowest:
        operator = tokens.take()
        right = parse_constant(tokens, what, precedence + 1, depth)
        if isinstance(value, FloatBits) or isinstance(right, FloatBits):
            raise tokens.error("an expression of floating-point constants is not supported", start)
        value = Integer(_apply(tokens, start, operator, value.value, right.value))
    return value


def _parse_primary(tokens: Tokens, what: str, depth: int) -> Integer | FloatBits:
    if depth > DEEPEST:
        raise tokens.error(f"a constant is nested more than {DEEPEST} deep")
    start = tokens.at
    token = tokens.take()
    if token == "(":
        value = parse_constant(tokens, what, depth=depth + 1)
        tokens.expect(")", "after a constant expression")
        return value
    if token in ("-", "+", "~", "!"):
        return _apply_sign(tokens, start, token, _parse_primary(tokens, what, depth + 1))
    if not token or not (token[0].isdigit() or token == "WARP_SZ"):
        raise tokens.expected(what, start)
    number = read_number(token)
    if number is None:
        raise tokens.error(
            f"malformed number '{token}'",
            start,
            "0f takes 8 hexadecimal digits, 0d takes 16, and integers have at most 64 bits",
        )
    return number


def _apply_sign(tokens: Tokens, start: int, sign: str, value: Integer | FloatBits) -> Integer | FloatBits:
    if sign == "+":
        return value
    if isinstance(value, FloatBits):
        if sign != "-":
            raise tokens.error(f"'{sign}' before a floating-point constant", start)
        return FloatBits(value.bits ^ (1 << (value.width - 1)), value.width)
    result = {"-": -value.value, "~": ~value.value, "!": int(not value.value)}[sign]
    return Integer(_check_range(tokens, start, result))


def _apply(tokens: Tokens, start: int, operator: str, left: int, right: int) -> int:
    if operator in ("<<", ">>") and not 0 <= right < 64:
        raise tokens.error(f"a constant is shifted by {right}; expected 0 to 63", start)
    if operator == "/" and right == 0:
        raise tokens.error("a constant is divided by zero", start)
    match operator:
        case "+":
            result = left + right
        case "-":
            result = left - right
        case "*":
            result = left * right
        case "/":
            result = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        case "<<":
            result = left << right
        case ">>":
            result = left >> right
        case "&":
            result = left & right
        case "^":
            result = left ^ right
        case _:
            result = left | right
    return _check_range(tokens, start, result)


def _check_range(tokens: Tokens, start: int, value: int) -> int:
    if not LOWEST <= value <= HIGHEST:
        raise tokens.error(f"the constant {value} does not fit in 64 bits", start)
    return value
