"""The first process of a sandbox: started fresh, so that it holds nothing of its parent's; isolates itself and waits.

`python -c "…; main(descriptor)"` starts it with one end of a channel. It imports little, and nothing that starts
threads: the kernel gives no namespace of users to a process that has several.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from triptych.sandbox import processes, system
from triptych.sandbox.ground import PROCESSES, isolate
from triptych.sandbox.messages import Channel
from triptych.sandbox.supervisor import Supervisor


def main(descriptor: int) -> None:
    """Isolates this process as the first message says, and starts the supervisor in what it made."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel.at(descriptor)
    first = channel.receive()
    if first is None:
        return
    settings, _ = first
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")  # where the machine itself runs out of memory, this goes first
    ground = isolate(settings["folder"], tuple(settings["readable"]), frozenset(settings["left_out"]))
    os.environ.update(HOME=ground.scratch, TMPDIR=ground.scratch)
    system.prctl(system.SET_CHILD_SUBREAPER, 1)
    process = os.fork()
    if process:
        channel.close()
        os.waitpid(process, 0)
        if PROCESSES not in ground.held:  # else the kernel has ended all that the supervisor left
            processes.end_all(frozenset())
        os._exit(0)
    system.prctl(system.SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    sys.path[:] = settings["import_from"]
    Supervisor(channel, ground).serve(settings)
