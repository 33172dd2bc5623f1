"""`tt.plans`: plans as users have them. Ship one, name it by its contents, run it on data.

`kernel[grid, block].plan(…)` and an NKI kernel's `.plan(…)` make them.
"""

from __future__ import annotations

from triptych.core.plan import Plan
from triptych.core.serialise import digest, pack, unpack
from triptych.execution.run import Choice, PlanRun, run_plan

__all__ = ["Choice", "Plan", "PlanRun", "digest", "pack", "run_plan", "unpack"]
