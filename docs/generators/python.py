"""The page of the Python interface: the public names with their signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType

import triptych
from generators.markdown import code, documentation, first_paragraph

_HEAD = """\
# The Python interface

What `import triptych as tt` gives. Nothing is imported until it is used, so that the import itself is quick. Errors are
on [a page of their own](errors.md), settings [too](settings.md).

"""


def page() -> str:
    """The page's Markdown."""
    return _HEAD + "".join(_names()).rstrip() + "\n"


def _names() -> Iterator[str]:
    things = {name: getattr(triptych, name) for name in triptych.__all__}
    for name, thing in things.items():
        if isinstance(thing, ModuleType):
            yield f"## tt.{name}\n\n{documentation(thing)}\n\n"
            yield from _functions(name, thing)
    yield "## Functions\n\n"
    for name, thing in things.items():
        if inspect.isroutine(thing):
            yield _entry(f"tt.{name}{signature(thing)}", documentation(thing))
    yield "## Classes\n\n"
    for name, thing in things.items():
        if inspect.isclass(thing) and not issubclass(thing, BaseException):
            yield f"### tt.{name}\n\n{documentation(thing)}\n\n{_members(thing)}\n"


def _functions(module: str, thing: ModuleType) -> Iterator[str]:
    for name in sorted(getattr(thing, "__all__", ())):
        member = getattr(thing, name)
        if inspect.isroutine(member):
            yield _entry(f"tt.{module}.{name}{signature(member)}", documentation(member))


def _entry(head: str, words: str) -> str:
    """A heading in code, and the docstring as it stands: its `Args:` and `Raises:` are lists by indentation."""
    summary, _, rest = words.partition("\n\n")
    body = f"<!-- not run: a docstring -->\n```text\n{rest.rstrip()}\n```\n\n" if rest.strip() else ""
    return f"### {code(head)}\n\n{summary}\n\n{body}"


def _members(kind: type) -> str:
    """The public members that the class itself defines."""
    lines: list[str] = []
    for name, member in vars(kind).items():
        function = member.fget if isinstance(member, property) else member
        if name.startswith("_") or not (inspect.isfunction(function) or isinstance(member, classmethod)):
            continue
        shown = name if isinstance(member, property) else f"{name}{signature(getattr(kind, name))}"
        lines.append(f"- {code(shown)}: {first_paragraph(function)}\n")
    return "".join(lines)


def signature(function: object) -> str:
    """The parameters as they are annotated, without `self`."""
    assert callable(function)
    given = inspect.signature(function)
    kept = [one for name, one in given.parameters.items() if name not in ("self", "cls")]
    return str(given.replace(parameters=kept)).replace("'", "")
