"""torch while a program is captured: tensors on `cuda` without data.

They are tensors of torch's `meta` device, so that torch itself says shapes, types and strides of all results; what
stands for their memory is a storage of the plan (`tensors.py`). Allocations, views, fills and copies are nodes of the
plan, all else that torch would compute is noted as library work (`operators.py`). `mode.py` has what needs values.
"""
