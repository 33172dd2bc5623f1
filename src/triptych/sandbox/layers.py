"""The layers of a sandbox, a row each: what it stops, how it is applied, and the probe that sees whether it holds.

The first tasks of every sandbox are the probes (`observe`): a layer that was only asked for is none.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass

from triptych.core.errors import SandboxError, UnknownName
from triptych.sandbox import probes
from triptych.sandbox.outcome import End, Limits, Outcome
from triptych.sandbox.probes import Clues

Run = Callable[[str, bytes, Limits], Outcome | None]


@dataclass(frozen=True, slots=True)
class Layer:
    """One thing that confines a task."""

    name: str
    stops: str
    """What a task cannot do behind it."""
    applied: str
    """How: the kernel's means, and who uses them."""
    probe: Callable[[Clues], bool] | None = None
    """Whether it holds, tried in a task's process; `None` where the parent sees it from outside."""
    seen: str = ""
    """What the parent sees, where there is no probe."""
    root_alone: bool = False
    """Whether it takes root to have it."""

    @property
    def proof(self) -> str:
        """What must be seen for it to hold, as a sentence."""
        return self.seen if self.probe is None else (self.probe.__doc__ or "")


WATCH = "watch"

LAYERS: tuple[Layer, ...] = (
    Layer(
        "own user",
        "reading files, and meeting processes, of the user who runs triptych",
        "where that user is root: a user number that nobody has",
        probes.own_user,
        root_alone=True,
    ),
    Layer(
        "capabilities",
        "whatever an administrator may do, in its own namespaces too; programs that give rights",
        "all are dropped; `PR_SET_NO_NEW_PRIVS`",
        probes.capabilities,
    ),
    Layer(
        "files",
        "seeing any file but Python's, its packages', the system's libraries and those that were named; changing these",
        "a namespace of mounts whose root has only read-only binds of them",
        probes.files,
    ),
    Layer(
        "landlock",
        "opening any other file; TCP; signals and abstract sockets to outside (as far as the kernel knows them)",
        "a Landlock ruleset of the same paths",
        probes.landlock,
    ),
    Layer(
        "processes",
        "seeing other processes; outliving the task, however it detaches",
        "a namespace of processes for each task, whose first process is killed at the end",
        probes.processes,
    ),
    Layer(
        "signals",
        "signals to others, the sandbox itself and the parent among them",
        "the namespace of processes; or Landlock; or no calls that send signals",
        probes.signals,
    ),
    Layer(
        "network",
        "reaching any host, this one too; abstract sockets of others",
        "a namespace of networks with nothing in it",
        probes.network,
    ),
    Layer(
        "ipc",
        "shared memory, semaphores and message queues of others",
        "a namespace of these",
        probes.ipc,
    ),
    Layer(
        "system calls",
        "sockets; namespaces, mounts, tracing, keys, BPF, io_uring, performance counters, faults in user space, memory "
        "files, and all other calls that compilers do not make: the kernel's attack surface",
        "a seccomp filter of libseccomp's: what is not in the table of `system_calls.py` fails with `ENOSYS`",
        probes.system_calls,
    ),
    Layer(
        "scratch",
        "filling a disk; leaving a file behind; running a program of its own",
        "a file system in memory for each task, of limited size and number of files, from which nothing is executed",
        probes.scratch,
    ),
    Layer(
        "file size",
        "a file larger than the limit",
        "`RLIMIT_FSIZE`",
        probes.file_size,
    ),
    Layer(
        "process limit",
        "more processes and threads than the limit: a fork bomb",
        "`RLIMIT_NPROC`, which counts those of a sandbox alone where it has a user or a namespace of users to itself",
        probes.process_limit,
    ),
    Layer(
        "descriptors",
        "reading or writing what others have open; more open files than the limit",
        "all are closed but the task's own; `RLIMIT_NOFILE`",
        probes.descriptors,
    ),
    Layer(
        "memory",
        "more private memory in one process than the limit",
        "`RLIMIT_DATA`; `RLIMIT_AS` for addresses",
        probes.memory,
    ),
    Layer(
        "cpu",
        "more processor time in one process than the limit",
        "`RLIMIT_CPU`",
        probes.cpu,
    ),
    Layer(
        WATCH,
        "more memory, shared too, or processor time in all processes together than the limit; more wall time",
        "the supervisor looks every 4 to 25 ms, and kills; the parent ends a sandbox that does not answer",
        seen="A task that takes too much shared memory is ended.",
    ),
    Layer(
        "environment",
        "reading the parent's variables",
        "a process that is started fresh, with variables of its own",
        probes.environment,
    ),
    Layer(
        "debugging",
        "looking into the sandbox's processes through `/proc`",
        "`PR_SET_DUMPABLE`",
        probes.debugging,
    ),
)
"""In the order in which they are told."""
BY_NAME: Mapping[str, Layer] = {layer.name: layer for layer in LAYERS}
ALL_THAT_ANYONE_CAN_HAVE = frozenset(layer.name for layer in LAYERS if not layer.root_alone)
"""What to require where nothing should be missing."""


def check_names(names: Iterable[str]) -> None:
    """Raises `UnknownName` for a name that no layer has."""
    for name in names:
        if name not in BY_NAME:
            raise UnknownName.of("layer", name, BY_NAME)


def observe(run: Run, variables: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the layers that hold, in the order of the table.

    Args:
        run: Runs a task in the sandbox that is asked about; `None` where that has ended.
        variables: The names that its environment may have.

    Raises:
        SandboxError: Where the probes cannot be run.
    """
    with tempfile.NamedTemporaryFile(prefix="triptych-private-") as private:
        clues = Clues(os.geteuid(), private.name, os.stat("/proc/self/ns/ipc").st_ino, variables)
        probed = run(f"{__name__}:probe_all", json.dumps(asdict(clues)).encode(), probes.LIMITS)
    if probed is None or probed.reply is None:
        why = f": {probed.end.value}\n{probed.detail}" if probed else ""
        raise SandboxError(f"a sandbox cannot run its probes{why}")
    held = {str(name) for name in json.loads(probed.reply)}
    watched = run(f"{probes.__name__}:take_memory", b"", probes.LIMITS)
    if watched is not None and watched.end is End.OUT_OF_MEMORY:
        held.add(WATCH)
    return tuple(layer.name for layer in LAYERS if layer.name in held)


def probe_all(payload: bytes) -> bytes:
    """The task that probes all layers; gives the names of those that hold."""
    told = json.loads(payload)
    clues = Clues(told["user"], told["private"], told["ipc"], tuple(told["variables"]))
    return json.dumps([layer.name for layer in LAYERS if _holds(layer, clues)]).encode()


def _holds(layer: Layer, clues: Clues) -> bool:
    """Where a probe cannot even look, as without `/proc`, nothing has been seen to hold."""
    try:
        return layer.probe is not None and layer.probe(clues)
    except OSError:
        return False
