"""Problems of others as operators: a reference in torch, run by the trusted side, on the CPU in float64.

`kernelbench.py` and `gpu_mode.py` read a problem; `reference.py` makes an operator of a function of tensors, with a
budget that follows from `roundings.py`. They import torch, and run the problem's own code.
"""
