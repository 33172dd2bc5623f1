"""Landlock: which files this process may use, no network, and no signals or sockets out of it.

Written on the kernel's three calls: the package `landlock` knows files alone (see docs/decisions.md).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping

from triptych.sandbox import system

EXECUTE, READ_FILE, READ_FOLDER = 1 << 0, 1 << 2, 1 << 3
WRITE_FILE, TRUNCATE = 1 << 1, 1 << 14
MAKE_DEVICES = 1 << 6 | 1 << 11
"""Rights of `linux/landlock.h`."""
READ = EXECUTE | READ_FILE | READ_FOLDER
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | 1 << 15
"""Those that a rule about a file may name."""

_RIGHTS_OF_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many rights of files a version of the interface knows; later ones know as many as the last."""
NETWORK_SINCE, SCOPE_SINCE = 4, 6
_TCP = 1 << 0 | 1 << 1
_SCOPE = 1 << 0 | 1 << 1
"""Abstract sockets, and signals."""


def version() -> int:
    """That of the kernel's interface; raises `OSError` where there is none."""
    return system.system_call(system.LANDLOCK_CREATE, None, 0, 1)


def all_rights() -> int:
    """Every right to files that the kernel knows to withhold."""
    last = max(_RIGHTS_OF_VERSION)
    return (1 << _RIGHTS_OF_VERSION[min(version(), last)]) - 1


class _Path(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def restrict(allowed: Mapping[str, int]) -> None:
    """Takes from this thread, for good, all rights but those `allowed` at and below paths; those not there are none.

    Raises `OSError` where the kernel has no Landlock.
    """
    known = all_rights()
    network = _TCP if version() >= NETWORK_SINCE else 0
    scope = _SCOPE if version() >= SCOPE_SINCE else 0
    handled = (ctypes.c_uint64 * 3)(known, network, scope)
    size = 24 if scope else 16 if network else 8
    rules = system.system_call(system.LANDLOCK_CREATE, ctypes.byref(handled), size, 0)
    try:
        for path, rights in allowed.items():
            _allow(rules, path, rights & known)
        system.system_call(system.LANDLOCK_RESTRICT, rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allowed = rights if os.path.isdir(path) else rights & _FILE_RIGHTS
        system.system_call(system.LANDLOCK_ADD, rules, 1, ctypes.byref(_Path(allowed, parent)), 0)
    finally:
        os.close(parent)
