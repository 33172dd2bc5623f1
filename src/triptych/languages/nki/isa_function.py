"""Functions of `nki.isa` in both calling styles: destination passing, and Beta 1's, which returns a new tile.

A function is written once, in destination-passing form; `@instruction(result)` derives the other form from its
signature: no `dst`, and `dtype=` and `mask=` as keywords. `result` says which tile the other form makes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from triptych.languages.nki.indexing import refuse
from triptych.languages.nki.tensors import NkiTensor
from triptych.languages.nki.tracer import BETA1, Tracer, current

Arguments = Mapping[str, Any]
Result = Callable[[Tracer, Arguments, object], NkiTensor]
"""(tracer, bound arguments, dtype) -> the new tile."""
Write = Callable[..., int | None]

_TILE_NAMES = ("data", "data1", "src", "stationary")
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


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
        self._current = inspect.signature(write)
        self._beta1 = inspect.signature(legacy) if legacy is not None else _without_dst(self._current)

    def __call__(self, *args: object, **kwargs: object) -> NkiTensor | None:
        """Record the instruction.

        Raises:
            NkiError: (and its kinds) for arguments that the function does not take, or a broken rule of the hardware.
        """
        tracer = current(f"nisa.{self.__name__}")
        if self._result is None and self._legacy is None:
            return self._pass_destination(tracer, args, kwargs)
        if tracer.generation == BETA1:
            bound = self._bind(self._beta1, args, kwargs)
            return self._return_tile(tracer, bound)
        if self._has_destination(args, kwargs):
            return self._pass_destination(tracer, args, kwargs)
        bound = self._bind(self._beta1, args, kwargs)
        tracer.note_legacy(f"nisa.{self.__name__} without dst")
        return self._return_tile(tracer, bound)

    def _has_destination(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
        """Whether the call can only mean the destination-passing form."""
        try:
            bound = self._current.bind(*args, **kwargs).arguments
        except TypeError:
            return "dst" in kwargs or not self._binds(self._beta1, args, kwargs)
        tiles = [bound[name] for name in ("dst", *_TILE_NAMES) if name in bound]
        return all(isinstance(tile, NkiTensor) for tile in tiles)

    @staticmethod
    def _binds(signature: inspect.Signature, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            return False
        return True

    def _bind(
        self, signature: inspect.Signature, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> dict[str, Any]:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise refuse(f"nisa.{self.__name__}: {error}", f"its arguments are {_names(signature)}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _pass_destination(self, tracer: Tracer, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        del tracer
        self._write(**self._bind(self._current, args, kwargs))

    def _return_tile(self, tracer: Tracer, bound: dict[str, Any]) -> NkiTensor:
        if self._legacy is not None:
            return self._legacy(**bound)
        assert self._result is not None
        dtype, mask = bound.pop("dtype"), bound.pop("mask")
        target = self._result(tracer, bound, dtype)
        target.producer = self._write(target, **bound, mask=mask)
        return target


def _without_dst(signature: inspect.Signature) -> inspect.Signature:
    kept = [one for name, one in signature.parameters.items() if name not in ("dst", "mask")]
    added = [inspect.Parameter(name, _KEYWORD, default=None) for name in ("dtype", "mask")]
    return signature.replace(parameters=[*kept, *added])


def _names(signature: inspect.Signature) -> str:
    return ", ".join(name for name in signature.parameters)


def instruction(
    result: Result | None = None, *, legacy: Callable[..., NkiTensor] | None = None
) -> Callable[[Write], IsaFunction]:
    """Make a destination-passing function one that can be called in both styles; see the module's docstring."""
    return lambda write: IsaFunction(write, result, legacy)
