"""Which arguments are arrays under Triton, and the handles that they are bound to."""

from __future__ import annotations

import weakref
from typing import Any, cast

from triptych.core.handles import Handle
from triptych.execution.host import is_array as is_host_array
from triptych.execution.memory import memory
from triptych.languages.triton.internals import reinterpreted


def is_array(value: object) -> bool:
    """Whether a kernel gets a pointer to it: numpy, triptych and torch arrays, handles, reinterpreted arrays."""
    return is_host_array(value) or isinstance(value, Handle) or reinterpreted(value) is not None


def bind(array: object) -> Handle:
    """The handle of an array; of a reinterpreted one (`triton.reinterpret(array, dtype)`), that of its base.

    Raises:
        ArgumentError: for a tensor that is not in host memory, and for elements that no kernel can read.
    """
    if isinstance(array, Handle):
        return array
    base = reinterpreted(array)
    return memory().bind(array if base is None else base)


_bound: dict[int, tuple[weakref.ref[object], Handle]] = {}
"""The handles of arrays that Triton has specialised a launch for and not yet launched, by the array's `id`."""
_MOST_BOUND = 1024
"""Launches that fail in between leave theirs."""


def bind_for_launch(array: object) -> tuple[object, int]:
    """The element type as the array's maker has it, and its device address; the launch gets the handle from `bound`."""
    base, here = reinterpreted(array), memory()
    if base is None:
        host = here.find(array)
        element, handle = host.element, here.place(host)
    else:
        element, handle = cast(Any, array).dtype, here.bind(base)
    if type(array).__weakrefoffset__:
        if len(_bound) >= _MOST_BOUND:
            _bound.clear()
        _bound[id(array)] = weakref.ref(array), handle
    return element, handle.data_ptr()


def bound(array: object) -> Handle | None:
    """The handle of an array that `bind_for_launch` has just been asked for; None of anything else."""
    kept = _bound.pop(id(array), None)
    return kept[1] if kept is not None and kept[0]() is array else None
