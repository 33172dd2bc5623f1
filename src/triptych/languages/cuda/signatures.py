"""The kernels' signatures as the source has them: `extern "C"` names carry no types, and no name carries parameters'.

This reads declarations, not C++: where macros, conditionals or two declarations leave doubt, it says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from triptych.execution.demangle import demangle, readable, split_function
from triptych.languages.parameters import Declared, Parameter, declared_type, parse_type

_SKIPPED = re.compile(
    r"""
    //[^\n]* | /\*.*?\*/                              # comments
    | ^[ \t]*\#(?:[^\n\\]|\\.)*                       # directives, with the lines that they continue on
    | R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"            # raw strings
    | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*'       # strings, characters
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|::|\S")
_ATTRIBUTES = frozenset(
    {"__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__block_size__", "__attribute__", "alignas", "__align__"}
)
_VARIABLES = frozenset({"__constant__", "__device__", "__managed__"})
_STORAGE = frozenset({"static", "extern", "inline", "constexpr"})
_CLOSING = {"(": ")", "[": "]", "{": "}"}

Signatures = Mapping[str, tuple[Parameter, ...] | None]
"""By a kernel's name without namespaces; None where the source declares it in several ways."""


def read_signatures(source: str) -> Signatures:
    """The parameters of every `__global__` function of a source."""
    tokens = _TOKEN.findall(_SKIPPED.sub(" ", source))
    found: dict[str, tuple[Parameter, ...] | None] = {}
    for position, token in enumerate(tokens):
        declared = _declaration(tokens, position + 1) if token == "__global__" else None
        if declared is not None:
            name, parameters = declared
            same = name not in found or found[name] == parameters
            found[name] = parameters if same else None
    return found


def read_variables(source: str) -> Mapping[str, Declared | None]:
    """The types of a source's `__constant__`, `__device__` and `__managed__` variables, by names without namespaces.

    None where the source declares a name with several types.
    """
    tokens = _TOKEN.findall(_SKIPPED.sub(" ", source))
    found: dict[str, Declared | None] = {}
    for position, token in enumerate(tokens):
        if token in _VARIABLES:
            for name, declared in _declarators(tokens, position + 1):
                found[name] = declared if found.get(name, declared) == declared else None
    return found


def _declarators(tokens: Sequence[str], position: int) -> Iterator[tuple[str, Declared]]:
    """The variables of the declaration that goes on at `position`; none where it is a function's."""
    kept: list[str] = []
    while position < len(tokens) and tokens[position] != ";":
        token = tokens[position]
        attribute = token == "(" and kept[-1:] and kept[-1] in _ATTRIBUTES
        is_function = token == "operator" or (token == "(" and not attribute and "=" not in kept)
        end = _closing(tokens, position) if token in _CLOSING else position
        if is_function or end is None or token in _CLOSING.values():
            return
        if attribute:
            kept.pop()
        elif token not in (*_VARIABLES, *_STORAGE):
            kept += tokens[position : end + 1]
        position = end + 1
    base: list[str] = []
    for piece in _split(kept):
        cut = next((at for at, token in enumerate(piece) if token in ("=", "[", "{")), len(piece))
        head = base + piece[:cut]
        if len(head) > 1 and re.fullmatch(r"[A-Za-z_]\w*", head[-1]):
            yield head[-1], declared_type(head[:-1])
        base = base or [token for token in head[:-1] if token != "*"]


def _declaration(tokens: Sequence[str], position: int) -> tuple[str, tuple[Parameter, ...]] | None:
    """The name and the parameters of the function whose declaration goes on at `position`."""
    while position + 1 < len(tokens) and tokens[position] not in (";", "{", "}"):
        opens = tokens[position + 1] == "("
        end = _closing(tokens, position + 1) if opens else position
        if end is None:
            return None
        if opens and tokens[position] not in _ATTRIBUTES:
            pieces = _split(tokens[position + 2 : end])
            return tokens[position], tuple(_parameter(piece) for piece in pieces if piece != ["void"])
        position = end + 1
    return None


def _closing(tokens: Sequence[str], opening: int) -> int | None:
    expected: list[str] = []
    for position in range(opening, len(tokens)):
        token = tokens[position]
        if token in _CLOSING:
            expected.append(_CLOSING[token])
        elif token in _CLOSING.values():
            if expected.pop() != token:
                return None
            if not expected:
                return position
    return None


def _split(tokens: Sequence[str]) -> list[list[str]]:
    """The tokens cut at the commas that lie in no brackets."""
    pieces: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, "<": 1, "[": 1, "{": 1, ")": -1, ">": -1, "]": -1, "}": -1}.get(token, 0)
        if token == "," and depth == 0:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [piece for piece in pieces if piece]


def _parameter(tokens: list[str]) -> Parameter:
    tokens = tokens[: tokens.index("=")] if "=" in tokens else tokens
    brackets = tokens.index("[") if "[" in tokens else len(tokens)
    head, pointer = tokens[:brackets], ["*"] if brackets < len(tokens) else []
    if "(" in head or not head:
        return Parameter()
    named = len(head) > 1 and re.fullmatch(r"[A-Za-z_]\w*", head[-1]) is not None
    name = head[-1] if named and head[-1] not in _TYPE_WORDS else None
    ctype = parse_type(" ".join([*(head[:-1] if name else head), *pointer]))
    return Parameter(name, ctype)


_TYPE_WORDS = frozenset(
    {"int", "unsigned", "signed", "long", "short", "char", "float", "double", "bool", "const", "volatile"}
    | {"__restrict__", "__restrict"}
)


def parameters_of(entry: str, count: int, signatures: Signatures) -> tuple[Parameter, ...]:
    """What is known of the `count` parameters of a PTX entry: types by its mangled name, else by the source.

    Empty where neither says anything that fits.
    """
    text = demangle(entry)
    short = readable(entry).split("<", 1)[0].rsplit("::", 1)[-1]
    declared = signatures.get(short)
    if declared is not None and len(declared) != count:
        declared = None
    if text is None:
        return declared or ()
    types = split_function(text)[1]
    if len(types) != count:
        return ()
    names = [parameter.name for parameter in declared] if declared else [None] * count
    return tuple(Parameter(name, parse_type(kind)) for name, kind in zip(names, types, strict=True))
