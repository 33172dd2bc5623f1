"""A score -> a JSON document of the form `triptych.score/1`, whose JSON Schema lies beside this file."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from triptych.judge import Certificate, Cheated, Counterexample, Passed, Reason, Score, Time, Wrong
from triptych.judge.verification.certificate import Part
from triptych.report.json_report import launch_json

SCORE_SCHEMA = "triptych.score/1"
"""The document's `schema`: it changes when a reader would have to."""
MODELLED = "modelled"


def score_json(score: Score) -> dict[str, Any]:
    """The whole score. But for `cpu_s`, the same candidate, task, seed and version give the same."""
    return {
        "schema": SCORE_SCHEMA,
        "version": score.version,
        "operator": score.operator,
        "solution": {
            "name": score.candidate,
            "sha256": score.source_digest,
            "format": score.format,
            "key": score.key,
        },
        "language": score.language or None,
        "dtype": score.dtype,
        "sizes": list(score.sizes),
        "seed": score.seed,
        "verdict": score.verdict.outcome.value,
        "reason": _reason(score.reason),
        "reward": score.reward,
        "components": asdict(score.components),
        "times": [_time(one) for one in score.times],
        "error": _error(score),
        "work": [certificate_json(one) for one in certificates_of(score)],
        "launches": [launch_json(one) for one in score.launches],
        "evidence": [{**asdict(one), "value": _finite(one.value)} for one in score.evidence],
        "findings": list(score.findings),
        "isolation": {"layers": list(score.layers)},
        "cpu_s": score.cpu_s,
    }


def certificates_of(score: Score) -> tuple[Certificate, ...]:
    """Those of the sizes, or the one that does not hold."""
    match score.verdict:
        case Passed(certificates):
            return certificates
        case Cheated(certificate=Certificate() as one):
            return (one,)
        case _:
            return ()


def _reason(reason: Reason | None) -> dict[str, Any] | None:
    if reason is None:
        return None
    where = reason.where
    return {
        "code": reason.code,
        "message": reason.message,
        "meaning": reason.row.meaning,
        "advice": reason.row.advice,
        "file": None if where is None else where.file,
        "line": None if where is None else where.line,
    }


def _time(time: Time) -> dict[str, Any]:
    return {
        "size": time.size,
        "chip": time.chip,
        "estimate_s": time.estimate_s,
        "least_s": time.limit_s,
        "most_s": time.most_s,
        "error_bar": None if time.error_bar is None else asdict(time.error_bar),
        "provenance": time.provenance,
        "fraction": time.fraction,
        "baseline_s": time.baseline_s,
        "speedup": time.speedup,
        "sol_score": time.sol_score,
    }


def _error(score: Score) -> dict[str, Any]:
    figures = {one.name: one.value for one in score.evidence}
    wrong = score.verdict.counterexample if isinstance(score.verdict, Wrong) else None
    return {
        "elements": int(figures["elements compared"]),
        "right": int(figures["elements within the budget"]),
        "largest": _finite(figures.get("largest error")),
        "counterexample": None if wrong is None else _counterexample(wrong),
    }


def _counterexample(wrong: Counterexample) -> dict[str, Any]:
    return {
        "size": dict(wrong.size),
        "distribution": wrong.distribution,
        "seed": wrong.seed,
        "output": wrong.output,
        "index": list(wrong.index),
        "got": _number(wrong.got),
        "expected": _number(wrong.expected),
        "allowed": _number(wrong.allowed),
        "wrong_elements": wrong.wrong_elements,
        "elements": wrong.elements,
        "around": dict(wrong.around),
    }


def certificate_json(one: Certificate) -> dict[str, Any]:
    """A certificate, whether it holds or not."""
    return {
        "size": dict(one.size),
        "holds": one.failure is None,
        "flops": dict(one.flops),
        "total_flops": one.total_flops,
        "least_flops": one.least_flops,
        "may_do_less": one.may_do_less or None,
        "loaded": [_part(part) for part in one.loaded],
        "stored": [_part(part) for part in one.stored],
        "narrower_types": list(one.narrow),
        "decoys": [asdict(decoy) for decoy in one.decoys],
        "library": list(one.library),
    }


def _part(part: Part) -> dict[str, Any]:
    return {"name": part.name, "bytes": part.found, "least_bytes": part.least, "missing": part.missing or None}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _number(value: float) -> float | str:
    """JSON has no NaN and no infinity: they stand as text."""
    return value if math.isfinite(value) else str(value)
