"""asynccheck as generated code: who may still write a block's shared memory, or read it, asynchronously.

Copies are performed where they are issued; what a kernel must not do before they are complete is looked for here, in
code of its own, which only kernels with asynchronous copies or readers of shared memory have.

Beside a block's shared memory lies what `layout.py` describes. A *tag* for each granule of shared memory names the last
copy that may still write it (`copies.py`, `bulk.py`) and the lane that issued it, and *regions* of it are bits, set
where some tag is. Accesses look at the bit of their region, in the kernel itself; where it is set, at the tags
(`accesses.py`). A tag whose copy is not complete is a *hazard* (`completion.py`). Lists of copies are swept, and tags
and bits taken away, when a thread waits for its groups, or somebody sees the end of a phase of an mbarrier
(`mbarriers.py`). Asynchronous readers (`reads.py`, `products.py`) are a short list, at which writers look.
`machine.py` is what a kernel's code is made by; what it calls is a unit of its own (`unit.py`).
"""
