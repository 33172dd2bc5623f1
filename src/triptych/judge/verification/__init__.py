"""Whether a plan is right at a size, and whether its kernels did the work: `size_judge.py`, in the judge's own process.

`trials.py` draws inputs and says which runs there are, `verify.py` and `diagnosis.py` judge results and tell why one is
wrong, `shrink.py` finds a smaller counterexample, `steps.py` joins a run with its plan, `certificate.py` certifies the
work.
"""
