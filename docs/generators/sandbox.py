"""The page of the sandbox: its layers, limits and ends, from their tables."""

from __future__ import annotations

from generators.markdown import code, fields_of, members_of, table
from triptych.sandbox import End, Limits
from triptych.sandbox.layers import LAYERS

_HEAD = """\
# The sandbox

What runs code that nobody trusts (`triptych.sandbox`): a process that holds nothing worth taking, from bytes to bytes.
It knows nothing of kernels.

```python
from triptych.sandbox import Limits, Sandbox

with Sandbox(preload=("json",), limits=Limits(wall_s=10, memory_bytes=1 << 28)) as sandbox:
    outcome = sandbox.run("triptych.sandbox.probes:give_back", b"bytes")
print(outcome.end.value, outcome.reply)  # replied b'bytes'
```

A task is named `package.module:function`. What it returns is a claim, whatever else is true of it: the task may have
written it by any means. The parent reads it from memory of a fixed size once the task and all that it started are gone.

<!-- not run: a drawing -->
```text
 parent ── launcher ── supervisor ─┬─ zygote ── task ── what it starts
 any       isolates    watches,    │  has imported      in namespaces of its own, confined,
 process   itself      kills       └─ keeper            ended with its keeper
```

The launcher is a fresh process that inherits nothing. It isolates itself while it has one thread (the kernel gives a
process with threads no namespace of users) and starts the supervisor, which starts the zygote: that imports `preload`
once, and a task is a fork of it. A keeper is the first process of a task's own namespaces; when it is killed, so is all
that the task has started, however it detached itself. With its parent the whole sandbox ends, however that ends.

"""
_LAYERS = """\
## Layers

Each contains a hostile task by itself in what it stops; together they overlap on purpose. A machine may refuse some:
a container without namespaces still has Landlock, seccomp and the limits. `Outcome.layers` has the names of those that
*hold*: the first tasks of every sandbox try what each layer forbids, before any other code runs there.
`Sandbox(require=…)` runs nothing with less. A task whose process cannot be given a layer that the sandbox has does not
run.

Of Python's files a task sees the interpreter's own folders and those that hold packages alone: `site-packages`, or one
that `pip install --target` made and `PYTHONPATH` names. Any other folder on the parent's `sys.path` may be somebody's
project or home: of it a task sees the packages that were installed there, by their `RECORD`s, and nothing that lies
beside them. The current folder, modules that were not installed, and archives it does not see; `readable` and
`import_from` add what it should. (A machine without the layer `files` shows no list of such a folder either, so that
nothing is imported from it.)

"""
_LIMITS = """\
## Limits

"""
_BUSY = """\
A busy machine ends no task: time for which a task was ready to run, and others had the processors, does not count for
`wall_s`, up to nine tenths of all (where the kernel tells it, in `/proc/…/schedstat`).

"""
_ENDS = """\
## How a task can end

"""
_FOOT = """\
## What it is not

- A hole in the kernel is a hole in the sandbox: the filter of system calls makes the surface small, not nil. Whoever
  needs more puts the whole of triptych into a virtual machine.
- Processor and memory are shared: a task can tell what machine it runs on and how busy that is, and slow others down
  within its limits. It has a clock.
- Memory is counted from `/proc` every 4 to 25 ms where no limit of a process counts it (shared memory, many processes):
  a task may exceed its limit for that long. What several of its processes share counts for each, preloaded pages too.
- Without the layer `scratch` a disk is protected by the size of a file and by wall time alone; without `own user` the
  kernel sees the parent's user, and only the other layers stand between a task and that user's files.
- Linux alone, kernel 5.13 or later for Landlock, 5.14 for a count of processes that is the sandbox's own.

A task costs 15 ms of processor time, 27 ms with numpy, Triton and triptych preloaded: two forks and namespaces.
"""


def page() -> str:
    """The page's Markdown."""
    layers = [(code(row.name), row.stops, row.applied, row.proof.rstrip(".")) for row in LAYERS]
    limits = [(code(field.name), code(field.default), field.words) for field in fields_of(Limits)]
    ends = [(code(end.name), end.words) for end in members_of(End)]
    parts = (
        _HEAD,
        _LAYERS,
        table(("layer", "what it stops", "how it is applied", "what is seen"), layers),
        _LIMITS,
        table(("limit", "default", "of what"), limits),
        _BUSY,
        _ENDS,
        table(("end", "when"), ends),
        _FOOT,
    )
    return "".join(parts)
