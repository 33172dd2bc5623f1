"""Judges a captured plan at one size: runs it on inputs that nobody knew, verifies all results, certifies the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from triptych.chips import Chip
from triptych.core.checks import Severity
from triptych.core.plan import Choose, Launch, Plan
from triptych.core.serialise import pack
from triptych.judge.candidate import Task
from triptych.judge.claims import ForgedReply
from triptych.judge.execution.request import Execution, ExecutionRequest, Ran, Run, Stopped
from triptych.judge.verdict import Cheated, Failed, Reason, failed
from triptych.judge.verification.certificate import Certificate, certify
from triptych.judge.verification.diagnosis import diagnose, first_wrong
from triptych.judge.verification.steps import Step, steps_of
from triptych.judge.verification.trials import Trial, draw, droppable, runs_of
from triptych.judge.verification.verify import arrays_of, changed_input, wrong_shape
from triptych.operators.operator import Size

Execute = Callable[[Plan, ExecutionRequest], Execution]
"""Runs a request on its plan in a process of its own."""


_MOST_STEPS = 1 << 18
"""Instructions of a NeuronCore that a run may execute: each takes time to be placed on a timeline."""


@dataclass(slots=True)
class Seen:
    """What was seen of a candidate on the way to its verdict."""

    cached: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Object code of its kernels."""
    cpu_s: float = 0.0
    runs: int = 0
    elements: int = 0
    right: int = 0
    """Of the elements that were compared."""
    largest_error: float = 0.0
    """As a multiple of what is allowed."""
    is_bitwise: bool = True
    """Whether the ordinary case had the same bits under both orders of blocks."""
    findings: list[str] = field(default_factory=list[str])
    """Warnings and notices of checks."""


@dataclass(frozen=True, slots=True)
class SizeJudged:
    """A size at which all results are right."""

    size: Size
    certificate: Certificate
    cases: tuple[tuple[Step, ...], ...]
    """What was executed for each case, that of the ordinary distribution first."""


@dataclass(frozen=True, slots=True)
class SizeJudge:
    """Judges a plan at a size, on a chip."""

    task: Task
    size: Size
    plan: Plan
    chip: Chip
    seed: int
    execute: Execute
    seen: Seen

    def judge(self) -> SizeJudged | Failed:
        """The certificate and what was executed, or what is wrong."""
        if not any(isinstance(node, Launch | Choose) for node in self.plan.nodes):
            return failed("no_kernel", "no launch")
        trials = draw(self.task.operator, self.size, self.task.dtype, self.seed)
        mistake = wrong_shape(trials[0].case, self.plan.outputs)
        if mistake is not None:
            return failed("shape", mistake)
        runs = runs_of(trials, self.seed)
        done = self._run(trials, runs, droppable(self.plan))
        try:
            return self._judge(trials, runs, done)
        except ForgedReply as forged:
            return failed("forged_reply", f"the process that executes gave no answer: {forged}")

    def _judge(self, trials: Sequence[Trial], runs: Sequence[Run], done: Execution) -> SizeJudged | Failed:
        failure = self._verify(trials, runs, done.runs)
        if failure is not None:
            return failure
        watched = (ran for run, ran in zip(runs, done.runs, strict=True) if run.is_watched)
        cases = tuple(steps_of(self.plan, ran) for ran in watched if isinstance(ran, Ran))
        for steps in cases:
            failure = _too_long(steps) or self._unsafe(steps)
            if failure is not None:
                return failure
        certificate = self._certify(cases, done.dead)
        if certificate.failure is not None:
            return Cheated(Reason(*certificate.failure), certificate)
        return SizeJudged(self.size, certificate, cases)

    def _run(self, trials: Sequence[Trial], runs: tuple[Run, ...], drop: tuple[tuple[int, ...], ...] = ()) -> Execution:
        inputs = tuple(trial.inputs for trial in trials)
        request = ExecutionRequest(pack(self.plan), inputs, runs, self.chip, drop, self.seen.cached)
        done = self.execute(self.plan, request)
        self.seen.cached.update(done.cached)
        self.seen.cpu_s += done.cpu_s
        self.seen.runs += len(done.runs)
        return done

    def _verify(self, trials: Sequence[Trial], runs: Sequence[Run], done: Sequence[Ran | Stopped]) -> Failed | None:
        """The first run that ended early, changed an input or gave a wrong result; None where all are right."""
        handles = self.plan.outputs
        for run, ran in zip(runs, done, strict=False):
            if isinstance(ran, Stopped):
                return failed(ran.code, ran.message, ran.where)
            trial = trials[run.case]
            changed = changed_input(trial, ran)
            if changed is not None:
                return failed("input_changed", f"{changed} holds something else after the run")
            self._note(trial, ran)
            found = first_wrong(trial, ran, handles)
            if found is not None:
                narrow = self._narrow(ran)
                return diagnose(trial, run, *found, handles, narrow, lambda rs: self._run(trials, rs).runs, self.seed)
        first, again = done[0], done[1]
        if isinstance(first, Ran) and isinstance(again, Ran):
            self.seen.is_bitwise = self.seen.is_bitwise and first.outputs == again.outputs
        return None

    def _note(self, trial: Trial, ran: Ran) -> None:
        for shares in trial.case.shares(arrays_of(ran.outputs, self.plan.outputs)):
            self.seen.elements += shares.size
            self.seen.right += int((shares <= 1).sum())
            self.seen.largest_error = max(self.seen.largest_error, float(shares.max(initial=0.0)))

    def _unsafe(self, steps: Sequence[Step]) -> Failed | None:
        """An error that a check found in a launch; None where there is none."""
        for step in steps:
            for finding in () if step.record is None else step.record.findings:
                text = f"{finding.check}: {finding.message}"
                if finding.severity is Severity.ERROR:
                    return failed("unsafe", text, finding.where)
                if text not in self.seen.findings:
                    self.seen.findings.append(text)
        return None

    def _narrow(self, ran: Ran) -> tuple[str, ...]:
        return self._certify((steps_of(self.plan, ran),), frozenset()).narrow if ran.records else ()

    def _certify(self, cases: Sequence[Sequence[Step]], dead: frozenset[int]) -> Certificate:
        task = self.task
        return certify(task.operator, self.size.values, task.dtype, self.plan, cases, dead)


def _too_long(steps: Sequence[Step]) -> Failed | None:
    """A run of which a timeline would take too long; None for any other."""
    executed = [step.record.executed for step in steps if step.record is not None and step.record.executed is not None]
    count = sum(len(program) for one in executed for program in one.steps)
    if count <= _MOST_STEPS:
        return None
    return failed("execution_timed_out", f"{count} instructions of a NeuronCore; at most {_MOST_STEPS} are judged")
