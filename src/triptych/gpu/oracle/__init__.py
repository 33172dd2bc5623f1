"""The slow, obvious executor: numpy over 32 lanes, the same instruction table, its own control flow and counters.

It is there to be compared with the generated code; it shares no code with `gpu.lower` or `gpu.run`.
"""

from triptych.gpu.oracle.run import Tally, run_launch_slowly

__all__ = ["Tally", "run_launch_slowly"]
