"""Facts of the hardware that the machine models, each with its source. What differs from chip to chip is in `chips`."""

from __future__ import annotations

from triptych.core.gpu_facts import BANK_BYTES, BANKS, SECTOR_BYTES, WARP_SIZE

PAIR_BYTES = 2 * SECTOR_BYTES
"""What L2 reads of DRAM: two neighbouring sectors (an H200 read 252.7 MB for 3 947 520 sectors that lay apart)."""
BARRIERS = 16
"""Named barriers of a block (PTX manual, 9.7.13.1)."""
LOCAL_ALIGNMENT = 16
"""Bytes: a thread's local memory starts at a multiple of it, as the longest access wants."""
LOCAL_WORD_BYTES = 4
"""What of a thread's local memory lies together: consecutive threads of a warp have consecutive words (CUDA programming
guide, device memory accesses)."""
LOCAL_BYTES = 512 << 10
"""Local memory of a thread, in every compute capability (CUDA programming guide, technical specifications)."""
RESERVED_SHARED_BYTES = 1024
"""What the system reserves at the start of a block's shared memory from compute capability 8.0 on, beside the kernel's
own (CUDA programming guide; `%reserved_smem_offset_cap` on an H200, where the kernel's variables follow)."""
RESERVED_SHARED_END = 288
"""`%reserved_smem_offset_end` on an H200, where begin, 0 and 1 are 0: cooperative groups keep the barriers of tiles of
several warps before it, and find them cleared."""
POISON_BYTE = 0xA5
"""What shared and local memory hold before they are written. Hardware says nothing of it: it must not look useful."""

# State spaces in the generic address space (PTX manual, 5.1). Global and constant addresses are their own generic
# addresses; the other spaces lie in windows that no allocation reaches. Where hardware has them is not documented.
SHARED_WINDOW, LOCAL_WINDOW = 0x7F00_0000_0000, 0x7E00_0000_0000
PARAM_WINDOW = 0x7D00_0000_0000
"""Kernel parameters, for `cvta.param`."""
WINDOW_SIZE = 1 << 32
RANK_SHIFT = 24
"""An address of shared memory from bit 24 on: 0 for the memory of the block that uses it, else 1 + the rank in its
cluster of the block whose memory it is. What hardware has there is not documented; no block has 16 MiB."""
NO_RANK = 254
"""The rank that `mapa` names where there is no such block, or nothing to map: no cluster has it."""
GRID_WORKSPACE = 0x7C00_0000_0000
"""What cooperative launches count arrivals in: a `grid_workspace` of `cooperative_groups/details/driver_abi.h`, whose
address %envreg1 and %envreg2 hold."""
GRID_WORKSPACE_BYTES = 8
FIRST_CODE_ADDRESS = 0x7B00_0000_0000
"""A module's functions have addresses from here on, which are those of no memory."""
CODE_BYTES = 16
"""From one function's address to the next one's."""
FIRST_HEAP_ADDRESS = 0x7C80_0000_0000
"""The heap of `malloc` lies here, above all arrays and variables."""
FIRST_VARIABLE_ADDRESS = 0x0008_0000_0000
"""Variables of modules lie from here on, below the arrays (`AddressSpace.FIRST_ADDRESS`)."""

__all__ = [
    "BANKS",
    "BANK_BYTES",
    "BARRIERS",
    "CODE_BYTES",
    "FIRST_CODE_ADDRESS",
    "FIRST_HEAP_ADDRESS",
    "FIRST_VARIABLE_ADDRESS",
    "GRID_WORKSPACE",
    "GRID_WORKSPACE_BYTES",
    "LOCAL_ALIGNMENT",
    "LOCAL_BYTES",
    "LOCAL_WINDOW",
    "LOCAL_WORD_BYTES",
    "NO_RANK",
    "PAIR_BYTES",
    "PARAM_WINDOW",
    "POISON_BYTE",
    "RANK_SHIFT",
    "RESERVED_SHARED_BYTES",
    "RESERVED_SHARED_END",
    "SECTOR_BYTES",
    "SHARED_WINDOW",
    "WARP_SIZE",
    "WINDOW_SIZE",
]
