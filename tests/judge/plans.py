"""Judging without sandboxes: plans of functions of this process, executed here. For tests of one part at a time."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import triptych as tt
from triptych.core.plan import Plan
from triptych.core.settings import scope
from triptych.execution.capture import recording
from triptych.judge.candidate import Task, task
from triptych.judge.execution.inside import execute_task
from triptych.judge.execution.outside import read_reply
from triptych.judge.execution.request import Execution, ExecutionRequest
from triptych.judge.verdict import Failed
from triptych.judge.verification.size_judge import Seen, SizeJudge, SizeJudged
from triptych.operators import operator
from triptych.operators.operator import Operator

Solution = Callable[..., Any]


def captured(solution: Solution, judged: Task) -> Plan:
    """The plan of a function of arrays at the task's first size."""
    size = judged.sizes[0].values
    with recording() as made, tt.profile("h100"):
        inputs = [
            made.new_input(one.name, one.element(judged.dtype), one.shape(size)) for one in judged.operator.inputs
        ]
        result: Any = solution(*inputs)
        outputs: tuple[Any, ...] = result if isinstance(result, tuple) else (result,)  # pyright: ignore[reportUnknownVariableType]
        names = [one.name for one in judged.operator.outputs]
        return made.plan([one.handle for one in outputs], names)


def judged_plan(plan: Plan, judged: Task, cache: Path, seen: Seen | None = None) -> SizeJudged | Failed:
    """What comes of a plan at the task's first size, on an H100."""

    def execute(one: Plan, request: ExecutionRequest) -> Execution:
        with scope(cache_folder=cache):
            return read_reply(one, request, execute_task(pickle.dumps(request)))

    chip = tt.chips.load("h100")
    return SizeJudge(judged, judged.sizes[0], plan, chip, 7, execute, seen or Seen()).judge()


def judge(solution: Solution, of: str | Operator, cache: Path, dtype: str | None = None) -> SizeJudged | Failed:
    """What comes of a function of arrays."""
    judged = task(operator(of) if isinstance(of, str) else of, dtype=dtype, seed=7)
    return judged_plan(captured(solution, judged), judged, cache)
