"""The files that a sandbox sees: the interpreter, its packages, the system's libraries, paths that were named, scratch.

With namespaces of mounts these are all that there is; Landlock grants the same paths, whether or not there are.
"""

from __future__ import annotations

import csv
import os
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path

from triptych.sandbox import landlock, system

SCRATCH, PROCESSES, DEVICES = "/scratch", "/proc", "/dev"
_DEVICES = ("null", "zero", "full", "random", "urandom")
_HARMLESS = ("cpuinfo", "meminfo")
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/localtime")
_OF_A_PREFIX = ("bin", "lib", "lib64", "pyvenv.cfg")
_OF_PACKAGES = ("site-packages", "dist-packages", "lib-dynload")
"""Names of folders that hold packages and nothing else."""
_BESIDE_PACKAGES = {"bin", "__pycache__"}
"""What `pip install --target` and Python make beside packages."""
_OURS = str(Path(__file__).parents[2])
"""Where triptych itself lies, maybe among what is nobody's business."""


def import_paths() -> tuple[str, ...]:
    """Where a sandbox imports from: those folders of this process's `sys.path` of which it sees anything."""
    return tuple(path for path in sys.path if path == _OURS or _seen_of(path))


def _seen_of(path: str) -> tuple[str, ...]:
    """What a sandbox sees of a folder of `sys.path`.

    All of a folder of the interpreter's, or that holds packages alone. Any other folder, as `PYTHONPATH` or a script
    may name it, can be somebody's home: of it what was installed there, and nothing else.
    """
    standard = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    if path in standard or Path(path).name in _OF_PACKAGES:
        return (path,)
    if not os.path.isabs(path) or not os.path.isdir(path) or not os.access(path, os.R_OK):
        return ()  # of the current folder, an archive, or not for us to read
    installed = _installed(path)
    alone = installed and installed >= set(os.listdir(path)) - _BESIDE_PACKAGES
    return (path,) if alone else tuple(os.path.join(path, name) for name in sorted(installed))


def _installed(folder: str) -> set[str]:
    """The names in a folder that the records of the packages installed there list (`*.dist-info/RECORD`)."""
    names: set[str] = set()
    for record in Path(folder).glob("*.dist-info/RECORD"):
        with suppress(OSError, ValueError, csv.Error), record.open(encoding="utf-8", newline="") as file:
            names.update(row[0].partition("/")[0] for row in csv.reader(file) if row)
    return {name for name in names - _BESIDE_PACKAGES - {"", ".", ".."} if os.path.exists(os.path.join(folder, name))}


def readable_paths(named: tuple[Path, ...]) -> tuple[str, ...]:
    """All that a sandbox may read and execute, `named` included; each is there, and none lies below another."""
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    package = str(Path(__file__).parents[1])
    wanted = [
        *_SYSTEM,
        *(os.path.join(prefix, name) for prefix in prefixes for name in _OF_A_PREFIX),
        *(path for folder in sys.path for path in _seen_of(folder)),
        package,
        *(os.path.abspath(path) for path in named),
    ]
    both = {form for path in wanted for form in (path, os.path.realpath(path)) if os.path.exists(path)}
    found: list[str] = []
    for path in sorted(both, key=lambda path: Path(path).parts):
        if not any(Path(path).is_relative_to(other) and not _leaves(path, other) for other in found):
            found.append(path)
    return tuple(found)


def _leaves(path: str, above: str) -> bool:
    """Whether a link between `above` and `path` leads elsewhere, so that what is seen at `above` does not hold it."""
    return os.path.relpath(os.path.realpath(path), os.path.realpath(above)).startswith("..")


def build_root(folder: str, readable: tuple[str, ...]) -> None:
    """Makes a root of nothing but readable paths, a few devices and places to mount on; moves this process there."""
    system.mount("none", "/", flags=system.PRIVATE | system.RECURSIVE)
    system.mount("none", folder, "tmpfs", system.NO_SUID | system.NO_DEVICES, "size=1m,mode=755")
    for place in (SCRATCH, PROCESSES, DEVICES):
        os.mkdir(folder + place)
    for path in readable:
        _bind(path, folder + path)
        system.restrict_mount(folder + path, system.READ_ONLY | system.NO_SUID | system.NO_DEVICES)
    for name in _DEVICES:
        if os.path.exists(f"{DEVICES}/{name}"):
            _bind(f"{DEVICES}/{name}", f"{folder}{DEVICES}/{name}")
    system.mount(PROCESSES, folder + PROCESSES, flags=system.BIND | system.RECURSIVE)
    system.mount("none", folder + SCRATCH, "tmpfs", system.NO_SUID | system.NO_DEVICES, "size=64m,mode=777")
    system.change_root(folder)
    system.mount(
        "none", "/", flags=system.REMOUNT | system.BIND | system.READ_ONLY | system.NO_SUID | system.NO_DEVICES
    )


def _bind(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    system.mount(source, target, flags=system.BIND | system.RECURSIVE)


def mount_processes() -> None:
    """Shows this process's own namespace of processes at `/proc`."""
    flags = system.NO_SUID | system.NO_DEVICES | system.NO_EXECUTION
    system.mount("proc", PROCESSES, "proc", flags)


def mount_scratch(size: int) -> None:
    """Gives a task a scratch folder of its own, of so many bytes, which ends with its namespace of mounts."""
    flags = system.NO_SUID | system.NO_DEVICES | system.NO_EXECUTION
    system.mount("none", SCRATCH, "tmpfs", flags, f"size={size},nr_inodes={1 << 14},mode=777")


def rights(readable: tuple[str, ...], scratch: str, *, own_processes: bool, own_root: bool) -> dict[str, int]:
    """What Landlock grants a task at which paths.

    Args:
        readable: what it may read.
        scratch: its own folder.
        own_processes: whether `/proc` shows its own processes alone: else it gets little of that.
        own_root: whether `/` holds nothing else: then it may list folders to import from that have other files outside.
    """
    everything = landlock.all_rights()
    shown = (PROCESSES,) if own_processes else tuple(f"{PROCESSES}/{name}" for name in _HARMLESS)
    return {
        **(dict.fromkeys(sys.path, landlock.READ_FOLDER) if own_root else {}),
        **dict.fromkeys(readable, landlock.READ),
        **{f"{DEVICES}/{name}": landlock.READ_FILE | landlock.WRITE_FILE for name in _DEVICES},
        **dict.fromkeys(shown, landlock.READ_FILE | landlock.READ_FOLDER),
        scratch: everything & ~landlock.EXECUTE & ~landlock.MAKE_DEVICES,
    }
