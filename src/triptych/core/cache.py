"""The folder of compiled kernels: content-addressed, shared by any number of processes, never the reason of a failure.

An entry is a file whose name is the digest of everything that decides its contents, and whose contents carry their own
checksum. Writers fill a temporary file and rename it over the entry, so that readers see all of it or none of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from triptych.core.settings import settings

MAGIC = b"triptych-cache/1\n"
"""The first bytes of an entry; they change with the entry's layout."""

_CHECKSUM_BYTES = hashlib.sha256().digest_size
_SCANS_PER_CAPACITY = 16
_JOURNAL = "written"
"""A file of the folder: a byte for each `_BLOCK` bytes that all processes have written since one measured it."""
_BLOCK = 4096
_KEPT_FRACTION = 0.9
"""What eviction leaves of the capacity, so that it does not run again at once."""


def key_of(*parts: str | bytes) -> str:
    """The digest of `parts`, in hexadecimal; where one part ends and the next begins counts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


@dataclass(slots=True)
class Cache:
    """A folder of entries, of at most `capacity` bytes; the least recently used go first. 0 bytes: never looked at."""

    folder: Path
    capacity: int

    def path(self, kind: str, key: str) -> Path:
        """Where the entry lies: a folder for its kind, then one for the first byte of its key."""
        return self.folder / kind / key[:2] / key

    def has(self, kind: str, key: str) -> bool:
        """Whether there is an entry, damaged or not."""
        return self.capacity > 0 and self.path(kind, key).is_file()

    def get(self, kind: str, key: str) -> bytes | None:
        """The entry, or None where there is none. A damaged entry is removed, and counts as none."""
        if not self.capacity:
            return None
        path = self.path(kind, key)
        try:
            data = path.read_bytes()
        except IsADirectoryError:
            shutil.rmtree(path, ignore_errors=True)
            return None
        except OSError:
            return None
        payload = _unwrap(data)
        with contextlib.suppress(OSError):
            if payload is None:
                path.unlink()
            else:
                os.utime(path)
        return payload

    def put(self, kind: str, key: str, payload: bytes) -> None:
        """Keeps `payload`; does nothing where it does not fit or the folder cannot be written."""
        data = MAGIC + hashlib.sha256(payload).digest() + payload
        if len(data) > self.capacity:
            return
        with contextlib.suppress(OSError):
            _write(self.path(kind, key), data)
            self._after_write(len(data))

    def fetch(self, kind: str, key: str, make: Callable[[], bytes]) -> bytes:
        """The entry, made and kept where there is none yet."""
        payload = self.get(kind, key)
        if payload is None:
            payload = make()
            self.put(kind, key, payload)
        return payload

    def _after_write(self, size: int) -> None:
        """Measures the folder where much was written since that was done last, or it never was."""
        try:
            journal = os.open(self.folder / _JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError:
            self.evict()
            return
        try:
            os.write(journal, bytes(-(-size // _BLOCK)))
            written = _BLOCK * os.fstat(journal).st_size
        finally:
            os.close(journal)
        if written > self.capacity // _SCANS_PER_CAPACITY:
            self.evict()

    def evict(self) -> None:
        """Removes the least recently used entries where the folder holds more than `capacity` bytes."""
        with contextlib.suppress(OSError):
            (self.folder / _JOURNAL).write_bytes(b"")
        entries = entries_of(self.folder)
        total = sum(size for _, size, _ in entries)
        if total <= self.capacity:
            return
        for _, size, path in sorted(entries):
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size
            if total <= self.capacity * _KEPT_FRACTION:
                return


def _unwrap(data: bytes) -> bytes | None:
    checksum, payload = data[len(MAGIC) :][:_CHECKSUM_BYTES], data[len(MAGIC) + _CHECKSUM_BYTES :]
    intact = data.startswith(MAGIC) and hashlib.sha256(payload).digest() == checksum
    return payload if intact else None


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def entries_of(folder: Path) -> list[tuple[float, int, str]]:
    """Last use in seconds, size in bytes and path of every file, leftovers of killed writers included."""
    found: list[tuple[float, int, str]] = []
    for part in _folders(folder):
        for inner in _folders(part.path):
            with contextlib.suppress(OSError), os.scandir(inner.path) as files:
                for file in files:
                    with contextlib.suppress(OSError):
                        status = file.stat()
                        if stat.S_ISREG(status.st_mode):
                            found.append((status.st_mtime, status.st_size, file.path))
    return found


def _folders(folder: Path | str) -> list[os.DirEntry[str]]:
    """What is in a folder that is one itself."""
    try:
        with os.scandir(folder) as found:
            return [entry for entry in found if entry.is_dir()]
    except OSError:
        return []


_open: dict[Path, Cache] = {}


def cache() -> Cache:
    """The cache of the settings in force."""
    now = settings()
    found = _open.get(now.cache_folder)
    if found is None or found.capacity != now.cache_bytes:
        found = _open[now.cache_folder] = Cache(now.cache_folder, now.cache_bytes)
    return found
