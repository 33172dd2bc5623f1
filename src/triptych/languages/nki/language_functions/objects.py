"""`nki.language`: the base of authors' own classes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any


class NKIObject:
    """The base of classes that kernels use. Without @dataclass and `__init__` they are made much as data classes are.

    A field that is given no value and has no default is None; `__post_init__` comes last. Source: "Class Support" in
    AWS's guide to the language. Values without an annotation are fields too, with @dataclass or without, as kernels of
    AWS's library rely on.
    """

    def __init_subclass__(cls, **options: Any) -> None:  # noqa: ANN401  # those of the author's class
        """Annotates the class's plain values, and gives its other fields defaults."""
        super().__init_subclass__(**options)
        annotations = inspect.get_annotations(cls)
        for name in annotations:
            if not hasattr(cls, name):
                setattr(cls, name, None)
        for name, value in vars(cls).items():
            if not name.startswith("__") and name not in annotations and _is_plain(value):
                annotations[name] = Any
        cls.__annotations__ = annotations

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  # the fields of the author's class
        """Fields in the order of their annotations.

        Raises:
            TypeError: for a value without a field.
        """
        fields = _fields(type(self))
        given = dict(zip(fields, args, strict=False))
        unknown = [*map(str, args[len(fields) :]), *sorted((set(kwargs) - set(fields)) | (set(given) & set(kwargs)))]
        if unknown:
            known = ", ".join(fields) or "none"
            raise TypeError(f"{type(self).__name__}: no field for {', '.join(unknown)}; its fields: {known}")
        for name, default in fields.items():
            setattr(self, name, given.get(name, kwargs.get(name, default)))
        self.__post_init__()

    def __post_init__(self) -> None:
        """What an author's class does with its fields."""


def _is_plain(value: object) -> bool:
    """Whether it is no method, property or class, and no list or the like, which instances would share."""
    return not callable(value) and not hasattr(value, "__get__") and hasattr(value, "__hash__") and bool(value.__hash__)


def _fields(kind: type) -> Mapping[str, Any]:
    """The annotated names of a class and its bases, with their defaults."""
    fields: dict[str, Any] = {}
    for one in reversed(kind.__mro__):
        fields |= {name: vars(one).get(name, fields.get(name)) for name in inspect.get_annotations(one)}
    return fields
