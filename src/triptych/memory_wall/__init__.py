"""The memory wall, measured: experiments whose counts are compared with the formulas of text-books.

`experiment.py` says what an experiment is, `catalogue.py` lists them; one file each. The kernels are those of
`triptych.kernels` where these show it, else the least that does, beside the experiment.
"""

from triptych.memory_wall.catalogue import EXPERIMENTS, experiment
from triptych.memory_wall.experiment import Axis, Experiment, Point

__all__ = ["EXPERIMENTS", "Axis", "Experiment", "Point", "experiment"]
