"""Triton: an unmodified `@triton.jit` kernel compiles with Triton's own CUDA backend and runs on triptych's machine.

Read in this order: `activation` (what is switched on), `devices` (chip and target), `specialisation` (an argument's
type), `loading` (a compiled kernel), `launcher` and `arguments` (a launch; imported with the first one), `clock` and
`benchmark` (modelled time), `autotuning`; `internals` has what Triton does not document and is read or laid out here.
Nothing is active until `activate()` is called.

`import triton` finds this package through the entry-point group `triton.backends`; so importing it must neither need a
finished `triton` nor cost its users anything: the names below are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triptych.languages.triton.activation import Activation, activate, deactivate
    from triptych.languages.triton.tensors import tensor

__all__ = ["Activation", "activate", "deactivate", "tensor"]

_HOMES = {"Activation": "activation", "activate": "activation", "deactivate": "activation", "tensor": "tensors"}


def __getattr__(name: str) -> object:
    """The public names, each loaded with its module on first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    importlib.import_module(f"{__name__}.version").check_version()  # what is imported next would fail without a word
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
