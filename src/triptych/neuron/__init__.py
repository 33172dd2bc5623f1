"""The NeuronCore machine: the table of its instructions, and the execution of their traces."""

from triptych.neuron.run import full_grid, run_launch

__all__ = ["full_grid", "run_launch"]
