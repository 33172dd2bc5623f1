"""A GPU through the driver's own interface: assemble PTX text with ptxas, launch it, copy results back."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUND_EACH = ("--fmad=false", "-O1")
"""Multiplications and additions are not contracted, so that each rounds by itself."""
_MOST_DYNAMIC_SHARED = 8
"""`CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`."""
Extents = tuple[int, int, int]


class DriverError(Exception):
    """The driver or the assembler said no."""


class Device:
    """The first GPU. `launch` runs a kernel that takes two pointers: inputs and outputs."""

    def __init__(self, target: str = "sm_90a", driver: object = None) -> None:
        """Opens a context; `target` is what PTX is assembled for, `driver` one that is not this machine's."""
        self.target = target
        self._driver: Any = driver or ctypes.CDLL("libcuda.so.1")
        self._call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)

    def _call(self, name: str, *arguments: object) -> None:
        status: int = getattr(self._driver, name)(*arguments)
        if status:
            raise DriverError(f"{name}: status {status}")

    def assemble(self, text: str, options: Sequence[str] = ROUND_EACH) -> bytes:
        """The cubin of PTX text.

        Raises:
            DriverError: with the assembler's message.
        """
        with tempfile.TemporaryDirectory() as folder:
            source, cubin = Path(folder, "row.ptx"), Path(folder, "row.cubin")
            source.write_text(text)
            command = ["ptxas", f"-arch={self.target}", *options, str(source), "-o", str(cubin)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise DriverError((done.stderr or done.stdout).replace(folder, "").strip())
            return cubin.read_bytes()

    def launch(
        self, cubin: bytes, entry: str, inputs: NDArray[Any], outputs: NDArray[Any], grid: int, block: int
    ) -> None:
        """Runs a kernel to its end; `outputs` go there and come back.

        Raises:
            DriverError: where the driver says no.
        """
        places = [self.copy_there(np.ascontiguousarray(array)) for array in (inputs, outputs)]
        self.run(cubin, entry, places, grid, block)
        self.copy_back(places[1], outputs)
        self.free(*places)

    def run(
        self, cubin: bytes, entry: str, arguments: Sequence[Any], grid: int | Extents, block: int | Extents,
        shared_bytes: int = 0,
    ) -> None:  # fmt: skip
        """Runs a kernel to its end; `arguments` are objects of ctypes, `shared_bytes` is its dynamic shared memory.

        Raises:
            DriverError: where the driver says no.
        """
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), cubin)
        self._call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
        shape = [n for one in (grid, block) for n in ((one, 1, 1) if isinstance(one, int) else one)]
        if shared_bytes:
            self._call("cuFuncSetAttribute", function, _MOST_DYNAMIC_SHARED, shared_bytes)
        self._call("cuLaunchKernel", function, *shape, shared_bytes, None, pointers, None)
        self._call("cuCtxSynchronize")
        self._call("cuModuleUnload", module)

    def status(self, name: str, *arguments: object) -> int:
        """What a function of the driver gives."""
        return getattr(self._driver, name)(*arguments)

    def copy_back(self, place: ctypes.c_uint64, array: NDArray[Any]) -> None:
        """Fills a contiguous array with what lies at a place."""
        self._call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), place, ctypes.c_size_t(array.nbytes))

    def free(self, *places: ctypes.c_uint64) -> None:
        """Gives memory back."""
        for place in places:
            self._call("cuMemFree_v2", place)

    def copy_there(self, array: NDArray[Any]) -> ctypes.c_uint64:
        """A place in the GPU's memory that holds a contiguous array."""
        place = ctypes.c_uint64()
        size = ctypes.c_size_t(max(array.nbytes, 8))
        self._call("cuMemAlloc_v2", ctypes.byref(place), size)
        if array.nbytes:
            self._call("cuMemcpyHtoD_v2", place, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
        return place
