"""The NeuronCore machine: the table of its instructions, and the execution of their traces."""

from triptych.neuron.run import run_launch

__all__ = ["run_launch"]
