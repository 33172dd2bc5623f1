"""What a wrong result depends on: found by running its case again, with one thing changed at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triptych.core.handles import Handle
from triptych.judge.execution.request import Ran, Run, Stopped
from triptych.judge.verdict import Counterexample, Reason, Wrong
from triptych.judge.verification.trials import ARRAYS_BYTE, Trial, probes
from triptych.judge.verification.verify import arrays_of, counterexample, holds_undefined, is_right
from triptych.operators.operator import Outputs

Again = Callable[[tuple[Run, ...]], Sequence[Ran | Stopped]]
"""Runs the case again."""


def diagnose(
    trial: Trial,
    run: Run,
    outputs: Outputs,
    found: Counterexample,
    handles: Sequence[Handle],
    narrow: tuple[str, ...],
    again: Again,
    seed: int,
) -> Wrong:
    """The verdict on a wrong result.

    Args:
        trial: its case.
        run: its order of blocks and undefined byte.
        outputs: the result.
        found: its first wrong element.
        handles: the plan's outputs.
        narrow: types of fewer digits than the operator's in which the kernels computed.
        again: runs the case once more, under other conditions.
        seed: decides what undefined memory holds then.
    """
    order, byte, zero, apart = _four(again(probes(run, run.case, seed)))
    if _is_right(trial, byte, handles) or _is_right(trial, zero, handles):
        message = f"with undefined memory of bytes {run.undefined_byte} it is wrong, with others it is right"
        return _wrong("undefined_memory", message, found)
    if holds_undefined(outputs, found, trial.case, run.undefined_byte):
        in_arrays = apart is None or holds_undefined(arrays_of(apart.outputs, handles), found, trial.case, ARRAYS_BYTE)
        if in_arrays:
            return _wrong("not_written", f"nobody has written it: it holds the byte {run.undefined_byte}", found)
        return _wrong("undefined_memory", "a kernel stored what nobody had written in memory on the chip", found)
    order_matters = _is_right(trial, order, handles)
    if order_matters:
        return _wrong("order_dependent", f"it is wrong with blocks in {run.block_order} order alone", found)
    if narrow:
        return _wrong("low_precision", f"the kernels computed in {', '.join(narrow)}", found)
    return Wrong(Reason("wrong_result", str(found)), found)


def _wrong(code: str, why: str, found: Counterexample) -> Wrong:
    return Wrong(Reason(code, f"{found}; {why}"), found)


def _four(runs: Sequence[Ran | Stopped]) -> Sequence[Ran | None]:
    """The probes' runs; none where one was stopped, or the process that was to run them died."""
    found = [one if isinstance(one, Ran) else None for one in runs]
    return (*found, None, None, None, None)[:4]


def _is_right(trial: Trial, ran: Ran | None, handles: Sequence[Handle]) -> bool:
    return ran is not None and is_right(trial.case, arrays_of(ran.outputs, handles))


def first_wrong(trial: Trial, ran: Ran, handles: Sequence[Handle]) -> tuple[Outputs, Counterexample] | None:
    """A run's outputs and their first wrong element, where there is one."""
    outputs = arrays_of(ran.outputs, handles)
    found = counterexample(trial, outputs)
    return None if found is None else (outputs, found)
