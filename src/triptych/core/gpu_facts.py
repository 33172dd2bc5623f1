"""Facts of all NVIDIA GPUs that machine, model and chips share; `gpu/hardware.py` has those of the machine alone."""

from __future__ import annotations

WARP_SIZE = 32
"""Threads of a warp (PTX manual, `WARP_SZ`; CUDA programming guide, technical specifications, 5.0 to 12.1)."""
SECTOR_BYTES = 32
"""What L1 asks L2 for at least, on every GPU since Maxwell (Nsight Compute's documentation, memory tables)."""
BANKS = 32
"""Banks of shared memory, each of which gives one word a wavefront (CUDA programming guide, shared memory)."""
BANK_BYTES = 4
"""Bytes of a bank's word."""
