"""The machine: executes a trace on numpy arrays and counts what it does."""

from triptych.neuron.run.launch import full_grid, run_launch

__all__ = ["full_grid", "run_launch"]
