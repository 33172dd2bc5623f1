"""A score for a person: the verdict first, then why, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from triptych.judge import Certificate, Progress, Score, Tally, Time, Wrong
from triptych.report.quantities import count, duration, percent, ratio, size
from triptych.report.score_json import certificates_of
from triptych.report.tables import plain_table

_STYLES = {"passed": "bold green", "wrong": "bold red", "cheated": "bold magenta"}
_OTHER = "bold yellow"


def score_text(score: Score) -> RenderableType:
    """The whole of it."""
    parts: list[RenderableType] = [_headline(score), *_why(score)]
    if score.times:
        parts += [Text(), _times(score)]
    shown = certificates_of(score)
    if shown:
        parts += [Text(), _work(shown)]
    parts += [Text(), *(Text(line, "dim") for line in _notes(score))]
    return Group(*parts)


def _style(score: Score) -> str:
    return _STYLES.get(score.verdict.outcome.value, _OTHER)


def _headline(score: Score) -> Text:
    asked = f"{score.operator} in {score.dtype}, at {', '.join(score.sizes)}"
    language = f" ({score.language})" if score.language else ""
    verdict = score.verdict.outcome.value
    return Text.assemble((verdict, _style(score)), f"  reward {score.reward:.4g}  {score.candidate}{language}: {asked}")


def _why(score: Score) -> Iterator[Text]:
    reason = score.reason
    if reason is None:
        return
    yield Text(f"{reason.code}: {reason.row.meaning}")
    yield Text(indent(reason.message, "  "))  # the candidate's own words may be in it: no line of them begins like ours
    if reason.where is not None:
        yield Text(f"  at {reason.where}")
    if isinstance(score.verdict, Wrong) and score.verdict.counterexample is not None:
        for name, values in score.verdict.counterexample.around.items():
            yield Text(f"  {name} = {values}", "dim")
    yield Text(f"  {reason.row.advice}")


def _times(score: Score) -> Table:
    table = plain_table()
    for heading in ("size", "chip"):
        table.add_column(heading, no_wrap=True)
    for heading in ("time\n(modelled)", "up to", "limit\n(modelled)", "of the limit", "speedup", "SOL score"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in score.times:
        others = ("" if value is None else ratio(value) for value in (one.speedup, one.sol_score))
        most = "" if one.most_s is None else duration(one.most_s)
        row = duration(one.estimate_s), most, duration(one.limit_s), percent(one.fraction), *others
        table.add_row(Text(one.size), Text(one.chip), *row)
    return table


def _work(certificates: tuple[Certificate, ...]) -> Table:
    table = plain_table()
    table.add_column("work, counted", overflow="fold")
    for heading in ("FLOPs", "least", "loaded", "least", "stored", "least"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in certificates:
        name = " ".join(f"{key}={value}" for key, value in one.size.items())
        moved = (sum(part.found for part in one.loaded), sum(part.least for part in one.loaded))
        stored = (sum(part.found for part in one.stored), sum(part.least for part in one.stored))
        table.add_row(Text(name), count(one.total_flops), count(one.least_flops), *map(size, moved), *map(size, stored))
    return table


def _notes(score: Score) -> Iterator[str]:
    figures = {one.name: one.value for one in score.evidence}
    compared = int(figures["elements compared"])
    if compared:
        told = f"{count(compared)} elements compared in {count(figures['runs'])} runs"
        yield f"{told}; largest error {ratio(figures['largest error'])} of what is allowed."
    for one in certificates_of(score):
        for decoy in one.decoys:
            yield f"{decoy.kernel} contributes nothing: without it the outputs are the same."
        if one.narrow:
            yield f"Computed in {', '.join(one.narrow)} too, which has fewer digits than {score.dtype}."
    yield from score.findings
    if score.times:
        yield "Times are the model's estimates. The limit: one launch and the least work."
        yield from map(_error_bar, {time.chip: time for time in score.times}.values())
    yield f"Seed {score.seed}; layers of isolation: {', '.join(score.layers) or 'none'}."


def _error_bar(time: Time) -> str:
    """How far the times on its chip may be off."""
    bar = time.error_bar
    if bar is None:
        return f"On {time.chip} nobody has compared estimates with measured times: they may be off by any factor."
    return f"Times on {time.chip} may be {bar.low:.2g} to {bar.high:.2g} of the estimate: {bar.source}."


def batch_summary(total: int, tally: Tally, out: Path) -> str:
    """What a batch came to."""
    told = f"{total} candidates have a score in {out}; {tally.failures} did not pass."
    if not tally.errors:
        return told
    return f"{told} On {tally.errors} of these the judge itself failed: the same command judges them again."


def progress_title(progress: Progress) -> str:
    """What a bar says: the newest verdict."""
    return "" if progress.score is None else f"{progress.score.verdict.outcome.value} {progress.score.candidate}"
