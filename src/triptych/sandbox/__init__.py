"""A process that holds nothing worth taking, to run code in that nobody trusts.

`Sandbox.run` gives a task bytes and takes bytes. What confines the task are the rows of `layers.py`.
"""

from triptych.sandbox.outcome import End, Limits, Outcome
from triptych.sandbox.sandbox import Sandbox

__all__ = ["End", "Limits", "Outcome", "Sandbox"]
