"""State spaces in the generic address space (PTX manual, 5.1).

Global, constant and parameter addresses are their own generic addresses; shared and local memory lie in windows that
no allocation reaches.
"""

from __future__ import annotations

from collections.abc import Mapping

SHARED_WINDOW = 0x7F00_0000_0000
LOCAL_WINDOW = 0x7E00_0000_0000
WINDOW_SIZE = 1 << 32

PARAM_WINDOW = 0x7D00_0000_0000
"""Kernel parameters, for `cvta.param`."""

WINDOWS: Mapping[str, int] = {
    "global": 0,
    "const": 0,
    "param": PARAM_WINDOW,
    "shared": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
}
"""What `cvta` adds to an address of the space."""
