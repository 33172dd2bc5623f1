"""From a candidate to its score: capture, execute, verify, certify, price; in the judge's own process."""

from __future__ import annotations

import secrets
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from triptych import __version__
from triptych.chips import Chip
from triptych.core.errors import TriptychError
from triptych.core.plan import Plan
from triptych.execution.launch_report import LaunchReport
from triptych.judge.baselines import reference_of
from triptych.judge.candidate import Candidate, Task
from triptych.judge.capture.plans import capture_sizes
from triptych.judge.execution.outside import execute
from triptych.judge.execution.request import Execution, ExecutionRequest
from triptych.judge.pricing import estimate, limit
from triptych.judge.reasons import JUDGE_ERROR
from triptych.judge.rewards import Time, reward
from triptych.judge.stable_numbers import COMPARED_DIGITS, to_digits
from triptych.judge.verdict import Cheated, Failed, Passed, Reason, Verdict, Wrong, failed
from triptych.judge.verification.certificate import SPARED
from triptych.judge.verification.shrink import shrink
from triptych.judge.verification.size_judge import Seen, SizeJudge, SizeJudged
from triptych.judge.workshop import CapturedPlans, Known, Workshop
from triptych.operators.operator import Size

_BASELINE_SEED = 0


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the evidence, with its unit and where it comes from."""

    name: str
    value: float
    unit: str
    provenance: str
    """`counted`, `measured`, `modelled` or `compared` (results with the float64 reference)."""


@dataclass(frozen=True, slots=True)
class Components:
    """How far a candidate came, for shaping a reward: each in [0, 1]."""

    captured: float
    """1 where its host code ran to its end."""
    ran: float
    """1 where its kernels did, for all inputs."""
    correct: float
    """The share of the elements compared that are within the budget."""
    certified: float
    """1 where the work was done by its kernels."""
    fast: float
    """The reward's own: how near to the limit, 0 for who did not pass."""


@dataclass(frozen=True, slots=True)
class Score:
    """The verdict on a candidate, its reward and what they rest on."""

    key: str
    """By what a batch knows that it was judged: its name, its source and the task."""
    operator: str
    candidate: str
    source_digest: str
    format: str
    language: str
    """What its kernels claim to be written in."""
    dtype: str
    sizes: tuple[str, ...]
    seed: int
    """Of all inputs: with it the same candidate has the same score."""
    verdict: Verdict
    times: tuple[Time, ...]
    components: Components
    launches: tuple[LaunchReport, ...]
    """Those of the ordinary case at each size, on the first chip."""
    evidence: tuple[Figure, ...]
    findings: tuple[str, ...]
    """What checks saw that is no error."""
    layers: tuple[str, ...]
    """The layers of isolation that held in every process."""
    cpu_s: float
    """Processor time of the sandboxed processes. It differs from run to run; no other number does."""
    version: str = __version__

    @property
    def passed(self) -> bool:
        """Whether it did."""
        return isinstance(self.verdict, Passed)

    @property
    def reward(self) -> float:
        """In [0, 1]: see `judge/rewards.py`."""
        return reward(self.passed, self.times)

    @property
    def reason(self) -> Reason | None:
        """Why it did not pass; None where it did."""
        return None if isinstance(self.verdict, Passed) else self.verdict.reason


@dataclass(slots=True)
class _Judgement:
    """What is known so far of one candidate."""

    candidate: Candidate
    task: Task
    workshop: Workshop
    seen: Seen
    seed: int | None
    language: str = ""
    captured: bool = False
    ran: bool = False
    times: tuple[Time, ...] = ()
    judged: tuple[SizeJudged, ...] = ()
    launches: tuple[LaunchReport, ...] = ()

    def verdict(self) -> Verdict:
        """On all compile targets that the task's chips have, one after the other."""
        targets: dict[str, list[Chip]] = {}
        for chip in self.task.chips:
            targets.setdefault(chip.target, []).append(chip)
        for chips in targets.values() or [[]]:
            failure = self._for_target(tuple(chips))
            if failure is not None:
                return failure
        for time in self.times:
            if time.fraction * (1 - SPARED) > 1 and not self.task.operator.may_do_less:
                told = f"at {time.size} on {time.chip}: {time.estimate_s:.3g} s; the limit is {time.limit_s:.3g} s"
                return failed("impossible_time", told)
        return Passed(tuple(one.certificate for one in self.judged))

    def _for_target(self, chips: tuple[Chip, ...]) -> Failed | None:
        found = capture_sizes(self.workshop, self.candidate, self.task, self.task.sizes, chips)
        if not isinstance(found, Known):
            return found
        self.captured = True
        self.seen.cached.update(found.cached)
        failure = self._of_plans(found.plans, chips)
        self.workshop.memory.remember(replace(found, cached=dict(self.seen.cached)))
        return failure

    def _of_plans(self, found: CapturedPlans, chips: tuple[Chip, ...]) -> Failed | None:
        self.language = self.language or ", ".join(found.languages)
        if self.seed is None:  # no sooner: nothing that the candidate's host code could have seen depends on it
            self.seed = secrets.randbits(48)
        placed = chips or self.task.chips_of(found.machine)
        if any(chip.machine != found.machine for chip in placed):
            names = ", ".join(chip.name for chip in placed)
            return failed("other_machine", f"the kernels are for the {found.machine} machine; asked for: {names}")
        for size, plan in zip(self.task.sizes, found.plans, strict=True):
            failure = self._at_size(size, plan, found, placed)
            if failure is not None:
                return failure
        return None

    def _at_size(self, size: Size, plan: Plan, found: CapturedPlans, chips: Sequence[Chip]) -> Failed | None:
        assert self.seed is not None
        judge = SizeJudge(
            self.task, size, plan, chips[0], self.seed,
            self._execute, self.seen,
        )  # fmt: skip
        judged = judge.judge()
        if not isinstance(judged, SizeJudged):
            self.ran = self.ran or isinstance(judged, Wrong | Cheated)
            return self._shrunk(judged, judge, chips) if isinstance(judged, Wrong) else judged
        self.ran = True
        try:
            times = tuple(self._time(judged, chip) for chip in chips)
        except (TriptychError, ArithmeticError, LookupError, ValueError) as problem:  # of what that process told
            return failed("forged_reply", f"what the kernels are said to have done makes no sense: {problem}")
        self.times += times
        self.judged += (judged,)
        records = (step.record for step in judged.cases[0])
        self.launches += tuple(LaunchReport(record, chips[0]) for record in records if record is not None)
        return None

    def _execute(self, plan: Plan, request: ExecutionRequest) -> Execution:
        done = execute(self.workshop.execution, plan, request)
        self.workshop.note(done.layers)
        return done

    def _time(self, judged: SizeJudged, chip: Chip) -> Time:
        task = self.task
        slowest = max(estimate(steps, chip) for steps in judged.cases)
        least = limit(task.operator, judged.size.values, task.dtype, chip)
        return Time(judged.size.name, chip.name, least, slowest, error_bar=chip.error_bar)

    def _shrunk(self, wrong: Wrong, judge: SizeJudge, chips: Sequence[Chip]) -> Wrong:
        if wrong.counterexample is None:
            return wrong
        smaller = shrink(self.workshop, self.candidate, judge, tuple(chips))
        return smaller if smaller is not None and smaller.reason.code == wrong.reason.code else wrong

    def score(self, *, baselines: bool) -> Score:
        """The whole of it."""
        self.workshop.begin()
        verdict = self.verdict()
        passed = isinstance(verdict, Passed)
        times = () if not passed else self._with_baselines() if baselines else self.times
        correct = self.seen.right / self.seen.elements if self.seen.elements else 0.0
        return Score(
            key=self.task.identity(self.candidate),
            operator=self.task.operator.name,
            candidate=self.candidate.name,
            source_digest=self.candidate.digest,
            format=self.candidate.format,
            language=self.language,
            dtype=self.task.dtype.name,
            sizes=tuple(size.name for size in self.task.sizes),
            seed=self.seed or 0,
            verdict=verdict,
            times=times,
            components=Components(float(self.captured), float(self.ran), correct, float(passed), reward(passed, times)),
            launches=self.launches,
            evidence=tuple(_evidence(self.seen, verdict)),
            findings=tuple(self.seen.findings),
            layers=self.workshop.held or (),
            cpu_s=self.seen.cpu_s,
        )

    def _with_baselines(self) -> tuple[Time, ...]:
        """The times beside those of the reference kernel, where there is one for the language."""
        known = self.workshop.memory.baselines
        reference = reference_of(self.task.operator.name, self.language)
        if reference is None:
            return self.times
        task = replace(self.task, seed=_BASELINE_SEED)
        key = task.key(reference)
        if key not in known:
            judgement = _Judgement(reference, task, self.workshop, Seen(), task.seed)
            judgement.verdict()  # whatever it is: a size that the reference kernel takes has a time
            known[key] = {(one.size, one.chip): one.estimate_s for one in judgement.times}
        found = known[key]
        return tuple(replace(one, baseline_s=found.get((one.size, one.chip))) for one in self.times)


def _evidence(seen: Seen, verdict: Verdict) -> Iterator[Figure]:
    """What the verdict rests on, beside the certificates."""
    yield Figure("runs", seen.runs, "runs", "counted")
    yield Figure("elements compared", seen.elements, "elements", "counted")
    yield Figure("elements within the budget", seen.right, "elements", "compared")
    if seen.elements:
        yield Figure("largest error", to_digits(seen.largest_error, COMPARED_DIGITS), "of what is allowed", "compared")
        yield Figure("same bits in both orders of blocks", float(seen.is_bitwise), "1 or 0", "compared")
    certificates = verdict.certificates if isinstance(verdict, Passed) else ()
    for number, one in enumerate(certificates):
        yield Figure(f"FLOPs, size {number + 1}", one.total_flops, "FLOPs", "counted")
        yield Figure(f"least FLOPs, size {number + 1}", one.least_flops, "FLOPs", "modelled")


def judge_error(candidate: Candidate, task: Task, error: Exception) -> Score:
    """The score of a candidate on which the judge failed with an exception: it says nothing of the candidate."""
    places = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(places[-1].filename).name}, line {places[-1].lineno})" if places else ""
    verdict = failed(JUDGE_ERROR, f"{type(error).__name__}: {error}{where}")
    return Score(
        key=task.identity(candidate),
        operator=task.operator.name,
        candidate=candidate.name,
        source_digest=candidate.digest,
        format=candidate.format,
        language="",
        dtype=task.dtype.name,
        sizes=tuple(size.name for size in task.sizes),
        seed=task.seed or 0,
        verdict=verdict,
        times=(),
        components=Components(0.0, 0.0, 0.0, 0.0, 0.0),
        launches=(),
        evidence=tuple(_evidence(Seen(), verdict)),
        findings=(),
        layers=(),
        cpu_s=0.0,
    )


def score_candidate(candidate: Candidate, task: Task, workshop: Workshop, *, baselines: bool = False) -> Score:
    """Judges a candidate. It never raises for anything that a candidate does.

    Args:
        candidate: its source.
        task: what it is judged by.
        workshop: the sandboxes, used by this thread alone meanwhile.
        baselines: whether the reference kernel of the language is timed too, for speedups.

    Raises:
        SandboxError: where a sandbox cannot be started, or not with the layers that are required.
    """
    return _Judgement(candidate, task, workshop, Seen(), task.seed).score(baselines=baselines)
