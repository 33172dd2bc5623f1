"""The page of the Python interface: the public names with their signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from functools import cached_property
from types import FunctionType, ModuleType, UnionType
from typing import Any, cast

import triptych
from generators.markdown import code, documentation, fields_of, first_paragraph, signature

_HEAD = """\
# The Python interface

What `import triptych as tt` gives. Nothing is imported until it is used, so that the import itself is quick. Errors are
on [a page of their own](errors.md), settings [too](settings.md).

"""

_COMPUTED: tuple[type, ...] = (property, cached_property)
_CALLED: tuple[type, ...] = (FunctionType, classmethod)


def page() -> str:
    """The page's Markdown."""
    return _HEAD + "".join(_names()).rstrip() + "\n"


def _names() -> Iterator[str]:
    things = {name: getattr(triptych, name) for name in triptych.__all__}
    told: dict[object, str] = {}
    for name, thing in things.items():
        if isinstance(thing, ModuleType):
            yield f"## tt.{name}\n\n{documentation(thing)}\n\n"
            yield from _functions(name, thing)
            yield from _classes(name, thing, told)
    yield "## Functions\n\n"
    for name, thing in things.items():
        if inspect.isroutine(thing):
            yield _entry(f"tt.{name}{signature(thing, types=True)}", documentation(thing))
    yield "## Classes\n\n"
    for name, thing in things.items():
        if inspect.isclass(thing) and not issubclass(thing, BaseException):
            yield _class(f"tt.{name}", thing)


def _functions(module: str, thing: ModuleType) -> Iterator[str]:
    for name in sorted(getattr(thing, "__all__", ())):
        member = getattr(thing, name)
        if inspect.isroutine(member):
            yield _entry(f"tt.{module}.{name}{signature(member, types=True)}", documentation(member))


def _classes(module: str, thing: ModuleType, told: dict[object, str]) -> Iterator[str]:
    """The classes and unions of classes of a module's `__all__`; `told` has those of the modules before."""
    for name in sorted(getattr(thing, "__all__", ())):
        member, full = getattr(thing, name), f"tt.{module}.{name}"
        if isinstance(member, UnionType):
            yield f"### {full}\n\n{' or '.join(code(one.__name__) for one in member.__args__)}.\n\n"
        elif inspect.isclass(member):
            first = told.setdefault(member, full)
            yield _class(full, member) if first == full else f"### {full}\n\nThe same as `{first}`.\n\n"


def _class(name: str, kind: type) -> str:
    return f"### {name}\n\n{documentation(kind)}\n\n{_members(kind)}\n"


def _entry(head: str, words: str) -> str:
    """A heading in code, and the docstring as it stands: its `Args:` and `Raises:` are lists by indentation."""
    summary, _, rest = words.partition("\n\n")
    body = f"<!-- not run: a docstring -->\n```text\n{rest.rstrip()}\n```\n\n" if rest.strip() else ""
    return f"### {code(head)}\n\n{summary}\n\n{body}"


def _members(kind: Any) -> str:  # noqa: ANN401  a class
    """The public fields, members and methods that the class itself defines."""
    if issubclass(kind, Enum):
        return "".join(f"- {code(f'{one.name} = {one.value!r}')}\n" for one in kind)
    lines: list[str] = []
    if is_dataclass(kind):
        for field in fields_of(cast("type", kind)):
            lines.append(f"- {code(f'{field.name}: {field.type}')}{': ' if field.words else ''}{field.words}\n")
    for name, member in vars(kind).items():
        public = not name.startswith("_")
        if public and isinstance(member, _COMPUTED):
            lines.append(f"- {code(name)}: {first_paragraph(member)}\n")
        elif public and isinstance(member, _CALLED):
            lines.append(f"- {code(name + signature(getattr(kind, name), types=True))}: {first_paragraph(member)}\n")
    return "".join(lines)
