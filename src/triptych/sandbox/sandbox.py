"""The parent's side of a sandbox: starts it, sends it tasks, bounds what comes back, and survives whatever happens."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from triptych.core.errors import SandboxError, UnknownName
from triptych.sandbox import layers, replies, view
from triptych.sandbox.ground import FILES, MECHANISMS
from triptych.sandbox.messages import Channel, Message
from triptych.sandbox.outcome import MOST_STRETCH, Limits, Outcome

_START = "import sys; sys.path.insert(0, {folder!r}); from triptych.sandbox.launcher import main; main({descriptor})"
_FLAGS = ("-s", "-P")
"""No packages of the user's own, nothing from the current folder."""
_ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "USER": "sandbox",
    "LOGNAME": "sandbox",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}
"""All that a sandbox knows of its surroundings. One thread: a fork has only the one that forks."""
_FROM_WITHIN = ("HOME", "TMPDIR")
_START_S, _GRACE_S = 120.0, 5.0
"""Seconds in which a sandbox must have imported what tasks need; beyond a task's own, after which it is ended."""
_TAIL_CHARACTERS = 2048
"""Of what a sandbox that did not start has said."""


@dataclass(frozen=True, slots=True)
class _Running:
    """A sandbox that runs."""

    process: subprocess.Popen[bytes]
    channel: Channel
    folder: str
    missing: Mapping[str, str]
    """Why a mechanism is not there."""
    layers: tuple[str, ...]

    def end(self) -> None:
        """Ends all its processes: its supervisor ends with the channel."""
        self.channel.close()
        try:
            self.process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Sandbox:
    """Runs tasks, each in a process of its own that is confined by all layers which the machine allows.

    It starts when it is first used, and again when it has died. One thread uses it at a time; a process may have
    several. It is a context manager: at the end all its processes are gone, and so they are when the parent ends.
    """

    def __init__(
        self,
        *,
        preload: tuple[str, ...] = (),
        readable: tuple[Path, ...] = (),
        import_from: tuple[Path, ...] = (),
        limits: Limits | None = None,
        require: frozenset[str] = frozenset(),
        environment: Mapping[str, str] | None = None,
        left_out: frozenset[str] = frozenset(),
    ) -> None:
        """Nothing is started yet.

        Args:
            preload: Modules that tasks need, imported once, behind all layers but those of a single task.
            readable: Files and folders that tasks may read, beside Python's, its packages' and the system's libraries.
            import_from: Folders to import from, beside those of packages; tasks may read them.
            limits: Those of a task that is run without its own.
            require: Names of layers without which nothing is run.
            environment: Variables beside the few that a sandbox has; of the parent's it has none.
            left_out: Mechanisms (`ground.MECHANISMS`) to do without, as if the machine did not have them.

        Raises:
            UnknownName: For a layer, or a mechanism, that there is not.
        """
        layers.check_names(require)
        for name in left_out - set(MECHANISMS):
            raise UnknownName.of("mechanism", name, MECHANISMS)
        self._preload = preload
        self._readable = (*readable, *import_from)
        self._import_from = import_from
        self._limits = limits or Limits()
        self._require = require
        self._environment = {**_ENVIRONMENT, **(environment or {})}
        self._left_out = left_out
        self._interrupted = False
        self._running: _Running | None = None
        self._end_running: weakref.finalize[..., Sandbox] | None = None

    def __enter__(self) -> Self:
        """The sandbox itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Ends it."""
        self.close()

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers that hold; starts the sandbox, where it does not run."""
        return self._started().layers

    @property
    def process(self) -> int | None:
        """The number of its first process, the parent of all others; `None` while it does not run."""
        return self._running.process.pid if self._running else None

    def run(self, task: str, payload: bytes, *, limits: Limits | None = None) -> Outcome:
        """Runs `task`, a `package.module:function` from bytes to bytes, in a fresh process; waits for its end.

        Whatever the task does, this gives an outcome, and the next task finds everything as it was.

        Raises:
            SandboxError: Where no sandbox can be started, or not with the layers that are required.
        """
        self._interrupted = False
        try:
            outcome = self._attempt(task, payload, limits or self._limits)
            if outcome is None:  # it had died since the last task
                self.close()
                outcome = self._attempt(task, payload, limits or self._limits)
        except BaseException:  # an interruption too: what runs is ended, and the next task starts anew
            self.close()
            raise
        if outcome is None:
            self.close()
            raise SandboxError("the sandbox ended twice before it could run a task")
        return outcome

    def close(self) -> None:
        """Ends the sandbox and all that runs in it; it starts again when it is used again."""
        self._running = None
        if self._end_running is not None:
            self._end_running()

    def interrupt(self) -> None:
        """From another thread than the one that waits for a task: ends what runs, and the task is `LOST`."""
        self._interrupted = True
        running = self._running
        if running is not None:
            running.channel.hang_up()

    def forget(self) -> None:
        """Leaves the sandbox to the process that started it, of which this one is a fork."""
        if self._running is not None and self._end_running is not None:
            self._end_running.detach()
            self._running.channel.close()
            self._running.process.returncode = 0  # it is not this process's child
            self._running = None

    def _attempt(self, task: str, payload: bytes, limits: Limits) -> Outcome | None:
        """Runs a task; `None` where the sandbox had ended before."""
        running = self._started()
        if self._interrupted:
            return replies.outcome(None, -1, b"", limits, running.layers)
        return self._exchange(running, task, payload, limits)

    def _started(self) -> _Running:
        """The sandbox that runs; another one where it has died."""
        if self._running is not None and self._running.process.poll() is not None:
            self.close()
        if self._running is None:
            running = self._start()
            self._end_running = weakref.finalize(self, running.end)
            try:
                self._running = self._observed(running)
            except BaseException:
                self.close()
                raise
        return self._running

    def _start(self) -> _Running:
        folder = tempfile.mkdtemp(prefix="triptych-sandbox-")
        ours, theirs = Channel.pair()
        code = _START.format(folder=str(Path(__file__).parents[2]), descriptor=theirs.fileno())
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                [sys.executable, *_FLAGS, "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=(theirs.fileno(),),
                env=self._environment,
                cwd="/",
                start_new_session=True,
            )
            running = _Running(process, ours, folder, {}, ())
            _SANDBOXES.add(self)
            theirs.close()
            try:
                answer = self._greet(running) or {"ready": False, "error": ""}
                if not answer["ready"]:
                    said.seek(0)
                    text = (said.read().decode("utf-8", "replace") + answer["error"])[-_TAIL_CHARACTERS:].strip()
                    raise SandboxError(f"the sandbox could not be started:\n{text}")
            except BaseException:
                running.end()
                raise
        if FILES not in answer["missing"]:
            shutil.rmtree(folder, ignore_errors=True)  # its root does not lie there any more
        return replace(running, missing=answer["missing"])

    def _greet(self, running: _Running) -> Message | None:
        """Tells the new sandbox what it is for; what it answers when it is ready."""
        settings: Message = {
            "folder": running.folder,
            "readable": view.readable_paths(self._readable),
            "import_from": [*view.import_paths(), *(os.path.abspath(path) for path in self._import_from)],
            "preload": self._preload,
            "left_out": sorted(self._left_out),
        }
        if not running.channel.send(settings):
            return None
        ready, _, _ = select.select([running.channel], [], [], _START_S)
        received = running.channel.receive() if ready else None
        return received[0] if received else None

    def _observed(self, running: _Running) -> _Running:
        """The same sandbox with the layers that its first tasks saw hold."""
        names = (*self._environment, *_FROM_WITHIN)
        held = layers.observe(lambda task, payload, limits: self._exchange(running, task, payload, limits), names)
        lacking = sorted(self._require - set(held))
        if lacking:
            why = "".join(f"\n  {name}: {reason}" for name, reason in running.missing.items())
            raise SandboxError(
                f"layers of isolation that are required do not hold here: {', '.join(lacking)}{why}",
                hint="Require less, or allow this process namespaces of users, Landlock and seccomp.",
            )
        return replace(running, layers=held)

    def _exchange(self, running: _Running, task: str, payload: bytes, limits: Limits) -> Outcome | None:
        """Runs a task; `None` where the sandbox had ended before."""
        read, write = os.pipe2(os.O_CLOEXEC)
        with (
            FileIO(read) as errors,
            FileIO(write, "w") as into,
            FileIO(replies.sealed(payload)) as sent,
            FileIO(replies.room(limits)) as reply,
        ):
            request = {"task": task, "limits": asdict(limits)}
            if not running.channel.send(request, (sent.fileno(), reply.fileno(), into.fileno())):
                return None
            into.close()
            answer, tail = replies.wait(running.channel, errors, limits.wall_s * MOST_STRETCH + _GRACE_S)
            if answer is None:
                self.close()
            return replies.outcome(answer, reply.fileno(), tail, limits, running.layers)


_SANDBOXES: weakref.WeakSet[Sandbox] = weakref.WeakSet()


def _forget_all() -> None:
    for sandbox in list(_SANDBOXES):
        sandbox.forget()


os.register_at_fork(after_in_child=_forget_all)
