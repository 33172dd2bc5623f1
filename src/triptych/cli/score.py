"""`triptych score`: a candidate's verdict and reward, or those of a folder of candidates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triptych.cli.files import JsonTarget
from triptych.cli.options import JsonOption
from triptych.cli.terminal import EXIT_FINDINGS, EXIT_USAGE, Terminal, counting, interruptible
from triptych.core.errors import UsageError

if TYPE_CHECKING:
    from triptych.judge import Pool, Task
    from triptych.operators.operator import Operator


SolutionArgument = Annotated[Path, typer.Argument(metavar="SOLUTION", help="A Python file, or a folder of such files.")]
OperatorOption = Annotated[
    str | None,
    typer.Option("--operator", metavar="OP", help="What it must compute; `triptych operators` lists them."),
]
ProblemOption = Annotated[
    Path | None,
    typer.Option(
        "--problem",
        metavar="PATH",
        help="In its place: a KernelBench problem's file, or a GPU MODE problem's folder. Its code is trusted.",
    ),
]
ChipsOption = Annotated[
    list[str] | None,
    typer.Option("--chip", metavar="CHIP", help="Whose roofline: a name or a TOML file. May be given several times."),
]
SizesOption = Annotated[
    list[str] | None,
    typer.Option("--size", metavar="SIZE", help="A size of the operator, in place of its tiny ones. Several times."),
]
DtypeOption = Annotated[
    str | None, typer.Option("--dtype", metavar="T", help="The operator's type T; its first where it is not said.")
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", metavar="N", min=0, help="Of all inputs; else drawn, and told.")
]
FormatOption = Annotated[str, typer.Option("--format", metavar="F", help="solution, kernelbench or gpu_mode.")]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", metavar="N", min=1, help="Candidates judged at a time; the usable cores.")
]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Of a folder: scores, a line of JSON each.")
]
IsolationOption = Annotated[
    bool, typer.Option("--require-isolation", help="Judge nothing unless every layer of isolation holds.")
]


def score(
    solution: SolutionArgument,
    operator: OperatorOption = None,
    problem: ProblemOption = None,
    chip: ChipsOption = None,
    size: SizesOption = None,
    dtype: DtypeOption = None,
    seed: SeedOption = None,
    format: FormatOption = "solution",
    workers: WorkersOption = None,
    out: OutOption = None,
    require_isolation: IsolationOption = False,
    json: JsonOption = None,
) -> None:
    """Judge a solution: is it right, did it do the work, how near does it come to the limit of the hardware.

    It runs in sandboxes, on inputs that are drawn when its host code has run. Exit status 0: passed; 1: any other
    verdict; 2: the judge itself failed. Of a folder, every Python file is judged; a file of scores that is there
    already is gone on with.
    """
    from triptych.chips import load
    from triptych.judge import Pool, task
    from triptych.sandbox.layers import ALL_THAT_ANYONE_CAN_HAVE

    wanted, sizes = _wanted(operator, problem, format, size or [])
    judged_by = task(wanted, sizes=sizes, dtype=dtype, chips=[load(one) for one in chip or ()], seed=seed)
    is_folder = solution.is_dir()
    if is_folder and out is None:
        raise UsageError("a folder's scores go to a file", hint="name it: --out results.jsonl")
    if is_folder and json is not None:
        raise UsageError("--json is of one solution's score", hint="a folder's scores are JSON: --out results.jsonl")
    if not is_folder and out is not None:
        raise UsageError("--out is for the scores of a folder", hint="--json FILE is for one solution's")
    require = ALL_THAT_ANYONE_CAN_HAVE if require_isolation else frozenset[str]()
    with interruptible(), Pool(workers if is_folder else 1, require=require) as pool:
        status = (
            _score_folder(solution, judged_by, format, pool, out)
            if out is not None
            else _score_file(solution, judged_by, format, pool, json)
        )
    if status:
        raise typer.Exit(status)


def _wanted(name: str | None, problem: Path | None, format: str, sizes: list[str]) -> tuple[Operator, list[str]]:
    """What is to be computed, and the names of the sizes that were asked for."""
    from triptych.judge.formats.table import format_of

    format_of(format)
    if (name is None) == (problem is None):
        raise UsageError("a solution is judged by an operator or by a problem", hint="--operator OP, or --problem PATH")
    if name is not None:
        from triptych.operators import operator as operator_of

        return operator_of(name), sizes
    from triptych.judge.problems.find import problem as problem_of

    assert problem is not None
    return problem_of(problem, format, sizes), []


def _score_file(path: Path, task: Task, format: str, pool: Pool, json: str | None) -> int:
    """Shows one score; gives the exit status."""
    from triptych.judge import Candidate
    from triptych.report.score_json import score_json
    from triptych.report.scores import score_text

    target = None if json is None else JsonTarget(json)
    try:
        candidate = Candidate.read(path, format)
    except OSError as problem:
        raise UsageError(f"cannot read {path}: {problem.strerror}") from problem
    score = pool.score(candidate, task, baselines=True)
    if target is not None:
        target.write(score_json(score))
    if target is None or not target.is_stdout:
        Terminal().show(score_text(score))
    return 0 if score.passed else EXIT_FINDINGS


def _score_folder(folder: Path, task: Task, format: str, pool: Pool, out: Path) -> int:
    """Adds scores to the file; gives the exit status."""
    from triptych.judge import Progress, Results, candidates_in, score_all
    from triptych.report.score_json import score_json
    from triptych.report.scores import batch_summary, progress_title

    candidates = candidates_in(folder, format)
    with counting(f"{task.operator.name}: {len(candidates)} candidates") as bar:

        def tell(progress: Progress) -> None:
            bar(progress.done, progress.total, progress_title(progress))

        tally = score_all(candidates, task, pool, Results(out), score_json, tell)
    Terminal().say(batch_summary(len(candidates), tally, out))
    return EXIT_USAGE if tally.errors else EXIT_FINDINGS if tally.failures else 0
