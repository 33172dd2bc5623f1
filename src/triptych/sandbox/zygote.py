"""The process that tasks are forked from: it has imported what they need, so that one starts in milliseconds.

It runs no task's code itself. `serve` answers the supervisor; `_run_here` is a task's process from its first line on.
"""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import signal
import traceback
from typing import Never

from triptych.sandbox import system, task
from triptych.sandbox.ground import Ground
from triptych.sandbox.messages import Channel, Message


def serve(channel: Channel, namespace: int, ground: Ground, settings: Message) -> Never:
    """Imports what tasks need, then forks a process for each, until the supervisor is gone."""
    try:
        system.prctl(system.SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        renew_folder(ground.scratch)
        os.chdir(ground.scratch)
        for name in settings["preload"]:
            importlib.import_module(name)
        gc.collect()
        gc.freeze()  # a collection in a task would else write to every object, and copy every page
        channel.send({"ready": True})
        while (request := channel.receive()) is not None:
            channel.send(_run(namespace, ground, *request))
    except BaseException:
        channel.send({"ready": False, "error": traceback.format_exc()[-2048:]})
    os._exit(0)


def _run(namespace: int, ground: Ground, message: Message, descriptors: tuple[int, ...]) -> Message:
    """Runs one task to its end."""
    payload, reply, errors, *namespaces = descriptors
    told, confined = os.pipe2(os.O_CLOEXEC)
    job = task.Job(
        message["task"], payload, reply, errors, confined, tuple(namespaces[1:]), message["limits"], message["others"]
    )
    try:
        process = _fork(namespace, ground, job, namespaces)
    except OSError as error:
        os.close(told)
        return {"status": None, "error": f"no process: {error}", "cpu_s": 0.0}
    finally:
        for descriptor in (*descriptors, confined):
            os.close(descriptor)
    was_confined = os.read(told, 1) == b"1"
    os.close(told)
    _, status, used = os.wait4(process, 0)
    cpu_s = used.ru_utime + used.ru_stime
    if not was_confined:
        return {"status": None, "error": "its process could not be confined", "cpu_s": cpu_s}
    return {"status": status, "cpu_s": cpu_s}


def _fork(namespace: int, ground: Ground, job: task.Job, namespaces: list[int]) -> int:
    """The number of the task's process, which is made in the first of the namespaces."""
    if not namespaces:
        return os.fork() or task.run(job, ground)
    system.enter(namespaces[0], system.NEW_PROCESSES)
    try:
        return os.fork() or task.run(job, ground)
    finally:
        system.enter(namespace, system.NEW_PROCESSES)


def renew_folder(path: str) -> None:
    """Makes an empty folder, in the place of what a task may have left there."""
    if os.path.isdir(path):
        for entry in os.scandir(path):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)
    os.makedirs(path, mode=0o700, exist_ok=True)
