"""The page of the judge: how a verdict comes about, the reward and its derivation, the table of reasons."""

from __future__ import annotations

from generators.markdown import code, table
from triptych.chips import load, names
from triptych.judge import OUTCOMES, REASONS
from triptych.judge.execution.request import BUDGET, LAUNCH_BUDGET
from triptych.judge.formats.table import FORMATS
from triptych.judge.verification.trials import ORDINARY_SEEDS
from triptych.operators import OPERATORS

_HEAD = """\
# The judge

`triptych score SOLUTION --operator OP` says of a solution whether it is right, whether its kernels did the work, and
how near it comes to the limit of the hardware. [Operators](operators.md) say what there is to compute. A solution is a
Python file with `solution(*inputs)`, in any of the languages:

```python
# add.py
import triptych as tt

KERNEL = tt.cuda.compile(\"\"\"
extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
\"\"\")["add"]


def solution(a, b):
    c = tt.empty(a.shape, a.dtype)
    KERNEL[(a.size + 255) // 256, 256](a, b, c, a.size)
    return c
```

```console
$ triptych score add.py --operator vec_add --seed 3
passed  reward 0.9782  add.py (cuda): vec_add in f32, at tiny

                  time                limit
size  chip  (modelled)    up to  (modelled)  of the limit  speedup  SOL score
─────────────────────────────────────────────────────────────────────────────
tiny  h100     2.05 µs  6.14 µs        2 µs         97.8%     1.01      0.566

work, counted  FLOPs  least    loaded     least    stored     least
───────────────────────────────────────────────────────────────────
n=1000          1000   1000  7.81 KiB  7.81 KiB  3.91 KiB  3.91 KiB

9000 elements compared in 9 runs; largest error 1 of what is allowed.
…
```

`--size`, `--dtype` and `--chip` ask for others than the tiny sizes, the first type and the default chip; `--json`
writes [all of it](../src/triptych/report/schemas/score-1.schema.json). Tiny sizes are right for finding out what is
wrong; there a launch takes longest, so that nearly all solutions come near the limit: for a reward that tells a good
kernel from a bad one, name a size with work in it.

A folder is a batch: `triptych score FOLDER --operator OP --workers 4 --out scores.jsonl` writes a line a candidate,
each as soon as it is there, and goes on where it ended, whatever ended it. Where the judge itself fails on a candidate,
its line has the reason `judge_error`, the others are judged, the exit status is 2, and the same command tries it again:
of lines with the same `solution.key` the last one counts.

<!-- not run: it judges what is judged above -->
```text
score = tt.judge.reward(source, "vec_add")  # from any thread; the sandboxes stay warm
score.reward, score.verdict, score.components

with tt.judge.Pool(workers=8) as pool:
    scores = [pool.submit(tt.judge.Candidate(one), tt.judge.task(tt.operators.operator("softmax"))) for one in sources]
```

"""
_WAY = f"""\
## How a verdict comes about

1. **Capture.** The source runs in [a sandbox](sandbox.md), on arrays that have shapes and no values. What comes out is
   a plan: allocations, launches, and programs as PTX or traces. A size is captured twice; both must ask for the same.
2. **The seed** is drawn now, unless one was asked for. Nothing that the source could see depends on it.
3. **Execution.** Another sandbox runs the plan: one worker, every access checked, {BUDGET} loop iterations a warp and
   {LAUNCH_BUDGET} a launch. It gets inputs; it knows neither results nor budgets. Inputs are of each of the operator's
   distributions, the ordinary one with {ORDINARY_SEEDS} seeds. From one case to the next the order of blocks and what
   undefined memory holds change; the first case runs under both.
4. **Verification**, in the judge's own process. Each element of each output in each run must lie within the operator's
   error budget of the float64 reference. NaN is right where the reference has NaN, and nowhere else. Inputs must hold
   what they held. A wrong case runs again with one thing changed at a time, which tells what it depends on; then
   smaller sizes are tried, and the first wrong element of the smallest one is the counterexample.
5. **The work certificate.** From what the machine counted: each byte of an output was stored by a kernel (a fill may
   be all that a byte got for some inputs, as in a histogram's empty bins); each element of an input that all
   solutions need was loaded by a kernel that contributes; such kernels carried out the operator's least FLOPs (but
   for a sixteenth: a sum of k products is told as 2 k FLOPs, and takes 2 k - 1). A launch contributes where the
   outputs change when it is left out; the others are named, their FLOPs do not count, and their time does. Fills and
   copies of the host count as launches that move their bytes; one that moves axes is library work, as is whatever a
   library was asked to compute. FLOPs in types with fewer digits than the operator's are named, and the error budget
   decides whether they may be. There is better mathematics for some, which may do with fewer FLOPs: {{less}}.
6. **The reward**, from the time that the [roofline](decisions.md) estimates for the slowest case.

With the same seed and version the same candidate has the same score, on any machine and with any number of workers; of
a score's numbers `cpu_s` alone differs. (What is compared with the reference is told to digits that no processor
changes. A compiler of another version makes another program of the same source. `tests/exploits/compare_scores.py`
compared all honest programs and an attempt of each kind on an AMD machine with 2 workers and an Intel one with 16, with
Python 3.11 and 3.12, numpy 2.4 and 2.5, Triton 3.9 and 3.6: of 281 that both compiled alike 280 had equal scores, and a
message of the last named another folder; the 98 others had the same verdict, reason and correctness.) A time below the
limit is no reward of 1 but a verdict, `impossible_time`: the limit follows from physics and from work that was counted,
so one of them is wrong, and somebody should look.

What the judge believes: the plan, since it is what runs; what the executing process says it counted, since the source
never runs there. That process compiles and runs programs that hostile text can be aimed at, so it is confined too, and
a reply that is no answer to what was asked is a verdict of its own, `forged_reply`.

"""
_REWARD = """\
## The reward

0 for all but `passed`. Else, of each size and chip, the limit over the estimate, and of these the geometric mean:

<!-- not run: formulas -->
```text
limit    = one launch + max(least bytes / bandwidth, matrix FLOPs / peak, plain FLOPs / peak)
estimate = the sum over launches of (launch overhead + the longest roof); on a NeuronCore the length of the timeline
reward   = (limit₁ / estimate₁ · limit₂ / estimate₂ · …)^(1/n)
```

No program takes less than the limit: it must be launched, load each input and store each output once, and carry out the
least FLOPs. So the reward lies in (0, 1], is 1 at the limit, and halves where the time doubles. It knows no baseline: a
weak one earns nothing. In the geometric mean equal ratios count equally, so that no size can be driven to nothing to
make up for the others. Both times are modelled, by the same peaks.

The estimate takes peaks for achievable; most real launches take longer. [Measured times](times.md) say by how much: in
JSON `error_bar` has the multiples of the estimate between which nine of ten of them lie, and where they come from, and
`most_s` is the upper one's. Both are null for chips that nobody compared. They change no reward.

{bars}For shaping, `components` say how far a candidate came, each from 0 to 1: `captured`, `ran`, `correct` (the share
of the elements compared that are within the budget), `certified`, `fast` (the reward). `speedup` is the time of our own
kernel of that operator and language over the candidate's; `sol_score` is SOL-ExecBench's, 1 / (1 + (T_k − T_SOL) /
(T_b − T_SOL)), with the limit for T_SOL and our kernel's time for T_b.

"""


def _error_bars() -> str:
    found: dict[tuple[str, str, str], list[str]] = {}
    for name in names():
        bar = load(name).error_bar
        if bar is not None:
            found.setdefault((f"{bar.low:g}", f"{bar.high:g}", bar.source), []).append(code(name))
    return table(("chips", "from", "to", "source"), ((", ".join(chips), *bar) for bar, chips in found.items()))


def page() -> str:
    """The page's Markdown."""
    outcomes = ((code(outcome.value), meaning) for outcome, meaning in OUTCOMES.items())
    reasons = ((code(row.code), row.outcome.value, row.meaning, row.advice) for row in REASONS.values())
    formats = ((code(row.name), row.meaning) for row in FORMATS.values())
    less = ", ".join(f"`{one.name}`" for one in OPERATORS.values() if one.may_do_less)
    return "".join(
        (
            _HEAD,
            _WAY.replace("{less}", less),
            _REWARD.replace("{bars}", _error_bars()),
            "## Verdicts\n\n",
            table(("verdict", "what it says"), outcomes),
            "## Reasons\n\n`triptych explain CODE` prints one; [what was tried](exploits.md) got which.\n\n",
            table(("code", "verdict", "meaning", "what to do"), reasons),
            "## Formats\n\n`--format` says how a source is written; [what is supported](judge-formats.md).\n\n",
            table(("format", "what it is"), formats).rstrip() + "\n",
        )
    )
