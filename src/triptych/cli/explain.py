"""`triptych explain`: what a code means: a verdict's reason, or a check whose findings are reported."""

from __future__ import annotations

from typing import Annotated

import typer

from triptych.cli.terminal import Terminal


def explain(
    code: Annotated[str, typer.Argument(metavar="CODE", help="A reason (`triptych score`) or a check (`--check`).")],
) -> None:
    """Say what a reason for a verdict, or a check, means, and what to do about it."""
    from triptych.report.explanations import explanation

    Terminal().say(explanation(code))
