"""A CUDA device for a torch that has none: tensors that say `cuda:0`, whose elements lie in the host's memory.

`install` switches it on; `marks` says which tensors count as the device's, `mode` is the torch function mode through
which scripts see them so, `rules` what it answers, `module` what stands in `torch.cuda`. Operators of torch run on the
CPU. torch is imported by these modules, and they are imported only where a program has imported torch.
"""
