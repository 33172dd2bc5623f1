"""What `triptych demo` runs: problems with a float64 answer (`problems.py`), and their kernels in each language."""
