"""The judge: is a candidate right, did it do the work, how near is it to the hardware's limit.

`scoring.py` is the way from a candidate to its score: `capture/` gives its plans, `execution/` runs them,
`verification/` judges what they did, `pricing.py` their time, `rewards.py` the reward. `reasons.py` is the table of why
candidates do not pass. A candidate's code runs in sandboxes alone; these import a part of this package, so each name is
imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triptych.core.late_imports import importing

if TYPE_CHECKING:
    from triptych.judge.api import reward, score
    from triptych.judge.batch import Progress, Results, Tally, candidates_in, score_all
    from triptych.judge.candidate import Candidate, Task, default_sizes, task
    from triptych.judge.pool import Pool
    from triptych.judge.reasons import OUTCOMES, REASONS, Outcome, ReasonRow
    from triptych.judge.rewards import Time
    from triptych.judge.scoring import Components, Score
    from triptych.judge.verdict import (
        Cheated,
        Counterexample,
        Crashed,
        Invalid,
        Passed,
        Reason,
        TimedOut,
        Verdict,
        Wrong,
    )
    from triptych.judge.verification.certificate import Certificate

__all__ = [
    "OUTCOMES",
    "REASONS",
    "Candidate",
    "Certificate",
    "Cheated",
    "Components",
    "Counterexample",
    "Crashed",
    "Invalid",
    "Outcome",
    "Passed",
    "Pool",
    "Progress",
    "Reason",
    "ReasonRow",
    "Results",
    "Score",
    "Tally",
    "Task",
    "Time",
    "TimedOut",
    "Verdict",
    "Wrong",
    "candidates_in",
    "default_sizes",
    "reward",
    "score",
    "score_all",
    "task",
]

_ORIGINS = {
    "api": "reward score",
    "batch": "Progress Results Tally candidates_in score_all",
    "candidate": "Candidate Task default_sizes task",
    "verification.certificate": "Certificate",
    "pool": "Pool",
    "reasons": "OUTCOMES REASONS Outcome ReasonRow",
    "rewards": "Time",
    "scoring": "Components Score",
    "verdict": "Cheated Counterexample Crashed Invalid Passed Reason TimedOut Verdict Wrong",
}

if not TYPE_CHECKING:
    __getattr__ = importing(__name__, _ORIGINS)
