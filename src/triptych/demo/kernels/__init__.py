"""The kernels of `triptych demo`, written as their users write them: CUDA C++, Triton and NKI."""
