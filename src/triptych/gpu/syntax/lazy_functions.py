"""The functions of a module whose bodies are read when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from triptych.gpu.syntax.ast import Function


class LazyFunctions(Mapping[str, Function]):
    """By name. Safe to use from several threads: whoever reads a body gets the same."""

    def __init__(self) -> None:
        """None are known yet."""
        self.headers: dict[str, Function] = {}
        """What stands before the bodies, which are empty here where they wait, and None where there is none."""
        self._complete: dict[str, Function] = {}
        self._readers: dict[str, Callable[[], Function]] = {}

    def add(self, header: Function, read: Callable[[], Function] | None) -> None:
        """A function, and what reads it with its body; None where that is all of it."""
        self.headers[header.name] = header
        self._complete.pop(header.name, None)
        self._readers[header.name] = read or partial(_as_it_is, header)

    def __getitem__(self, name: str) -> Function:
        """The whole function.

        Raises:
            KeyError: for a name that is none's.
            PtxSyntaxError: where the body does not follow the grammar.
        """
        found = self._complete.get(name)
        return found or self._complete.setdefault(name, self._readers[name]())

    def __contains__(self, name: object) -> bool:
        """Whether there is a function of that name, which is not read."""
        return name in self.headers

    def __iter__(self) -> Iterator[str]:
        """The names in the order of the text."""
        return iter(self.headers)

    def __len__(self) -> int:
        """Functions."""
        return len(self.headers)


def _as_it_is(header: Function) -> Function:
    return header


def headers_of(functions: Mapping[str, Function]) -> Mapping[str, Function]:
    """What stands before the bodies of a module's functions, whether these are read or not."""
    return functions.headers if isinstance(functions, LazyFunctions) else functions
