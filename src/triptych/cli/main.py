"""The `triptych` command: its parts, and what any error becomes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from triptych import __version__
from triptych.cli import chips, demo, explain, instructions, memory_wall, operators, run, score
from triptych.cli.terminal import EXIT_INTERRUPTED, EXIT_USAGE, Terminal
from triptych.core.errors import LaunchInterrupted, TriptychError
from triptych.core.languages import titles

_HELP = f"Run, check, count and place {titles()} kernels on a roofline, with no accelerator."

app = typer.Typer(
    name="triptych",
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# What follows SCRIPT is the script's own, whatever it looks like.
app.command("run", context_settings={"allow_interspersed_args": False})(run.run)
app.command("demo")(demo.demo)
app.command("chips")(chips.chips)
app.command("instructions")(instructions.instructions)
app.command("operators")(operators.operators)
app.command("memory-wall")(memory_wall.memory_wall)
app.command("score")(score.score)
app.command("explain")(explain.explain)


def _show_version(wanted: bool) -> None:
    if wanted:
        Terminal().say(f"triptych {__version__}")
        raise typer.Exit


@app.callback(help=_HELP)
def triptych(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """What is said before a command; the app's help is the table's."""


def main() -> None:
    """The entry point; `terminal.EXIT_STATUSES` says how it ends."""
    terminal = Terminal()
    try:
        app()
    except LaunchInterrupted as stop:
        terminal.complain(str(stop))
        sys.exit(EXIT_INTERRUPTED)
    except TriptychError as error:
        terminal.complain(str(error))
        sys.exit(EXIT_USAGE)


if __name__ == "__main__":
    main()
