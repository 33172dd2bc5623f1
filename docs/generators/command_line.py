"""The page of the command line, from the commands' own parameters and help."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, cast

import typer

from generators.markdown import code, table
from triptych.cli.main import app
from triptych.cli.terminal import EXIT_STATUSES

_HEAD = """\
# The command line

`triptych COMMAND --help` prints what stands here. Errors and progress go to standard error.

"""
_BEHIND_STATUSES = """\
Under `run` the status of the script itself goes first, where it is not 0. In JSON `exit_status` is the script's own,
and `clean` says whether the checks found nothing worse than a notice, whatever became of the script: the command ends
with 0 where `exit_status` is 0 and `clean` is true. What Ctrl-C, or the script's own `os._exit`, ends is reported up to
there.

Each JSON names its schema: that of `run` and `demo` is described by
[run-1.schema.json](../../src/triptych/report/schemas/run-1.schema.json), those of `chips`, `instructions`,
`operators`, `memory-wall` and `score` by [chips-1](../../src/triptych/report/schemas/chips-1.schema.json),
[instructions-1](../../src/triptych/report/schemas/instructions-1.schema.json),
[operators-1](../../src/triptych/report/schemas/operators-1.schema.json),
[memory-wall-1](../../src/triptych/report/schemas/memory-wall-1.schema.json) and
[score-1](../../src/triptych/report/schemas/score-1.schema.json).

`--html` writes one page that loads nothing and runs no script: the launches, their rooflines, and for each launch its
counters with their provenance, its hot lines, findings and notes. `--trace` writes Chrome's trace-event format, which
Perfetto opens: a process for each chip, launches one after the other, each as long as its modelled estimate, with a
track for each roof. Nothing in it was timed. Both take a file and not `-`. A file that cannot be written is an error
before the script runs.

"""


def page() -> str:
    """The page's Markdown."""
    group = cast("Any", typer.main.get_command(app))
    commands: Mapping[str, Any] = group.commands
    statuses = table(("exit status", "meaning"), [(str(status), text) for status, text in EXIT_STATUSES.items()])
    sections = "".join(_section(name, command) for name, command in commands.items())
    return _HEAD + statuses + _BEHIND_STATUSES + sections.rstrip() + "\n"


def _section(name: str, command: Any) -> str:  # noqa: ANN401  click's command, which typer vendors or not
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    usage = " ".join(["triptych", name, "[OPTIONS]", *map(_argument, arguments)])
    rows = [(code(_argument(one)), str(one.help)) for one in arguments]
    rows += [(code(_option(one)), str(one.help)) for one in options if one.name != "help"]
    return f"## {code(usage)}\n\n{inspect.cleandoc(command.help)}\n\n{table(('argument', 'meaning'), rows)}"


def _argument(parameter: Any) -> str:  # noqa: ANN401
    return str(parameter.metavar or parameter.name.upper())


def _option(parameter: Any) -> str:  # noqa: ANN401
    return " ".join([", ".join(parameter.opts), *_metavar(parameter)])


def _metavar(parameter: Any) -> Iterator[str]:  # noqa: ANN401
    if parameter.metavar:
        yield parameter.metavar
