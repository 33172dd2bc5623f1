"""What every cached result depends on besides its input: our own sources, LLVM, Python's pickles, the processor."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from triptych.core.cache import cache as disk_cache
from triptych.core.cache import key_of

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = ("core", "native", "gpu")
"""Where the code is that makes what is cached, and the classes that are pickled there."""

SETTLED_NS = 2_000_000_000
"""Nanoseconds after which a further edit of a file is sure to change its times, on the coarsest of file systems."""


@dataclass(frozen=True, slots=True)
class Processor:
    """The processor that code is made for, as LLVM calls it."""

    name: str
    features: str


@cache
def processor() -> Processor:
    """This machine's."""
    return Processor(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


@cache
def cache_digest() -> str:
    """Names everything that a cached result depends on besides its input."""
    versions = (llvmlite.__version__, np.__version__, sys.implementation.cache_tag)
    return key_of(sources_digest(_PACKAGE, _FOLDERS), *versions, processor().name, processor().features)


def sources_digest(package: Path, folders: Sequence[str]) -> str:
    """Names the Python files in folders of a package: their paths within it, and their contents.

    They are read only where the cache on disk does not know what files of the same absolute paths, sizes, inodes and
    times of change hold. What was changed an instant ago is not kept there: a coarse clock may give its next change
    the same time.
    """
    root = os.path.abspath(package)
    files = sorted((file.path, file.stat()) for folder in folders for file in _sources(os.path.join(root, folder)))
    states = [f"{path}\0{s.st_size} {s.st_ino} {s.st_mtime_ns} {s.st_ctime_ns}" for path, s in files]

    def digest() -> bytes:
        parts = ((path.removeprefix(root), Path(path).read_bytes()) for path, _ in files)
        return key_of(*chain.from_iterable(parts)).encode()

    newest = max(max(s.st_mtime_ns, s.st_ctime_ns) for _, s in files)
    if time.time_ns() - newest < SETTLED_NS:
        return digest().decode()
    return disk_cache().fetch("sources", key_of(*states), digest).decode()


def _sources(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _sources(entry.path)
            elif entry.name.endswith(".py"):
                yield entry
