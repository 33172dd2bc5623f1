"""From Triton's launch to the machine's: `Launcher` stands where Triton's own CUDA launcher would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import index
from typing import Any

from triptych.core.errors import LaunchError, UnsupportedFeature, UsageError
from triptych.core.gpu_facts import WARP_SIZE
from triptych.core.languages import TRITON
from triptych.core.plan import Launch, Program
from triptych.execution.memory import memory
from triptych.execution.run import run_launch_here
from triptych.languages.triton.arguments import NULL, Parameter, convert, expand, plain_parameters
from triptych.languages.triton.arrays import bind
from triptych.languages.triton.clock import Clock
from triptych.languages.triton.gaps import remarks_on_gaps
from triptych.languages.triton.internals import (
    LaunchCall,
    Metadata,
    Source,
    global_scratch,
    launching_line,
    warn_at_launch,
    with_scratch,
)
from triptych.languages.triton.repeats import Repeats, kind_of

FIRST_TENSOR_MAP_ARCHITECTURE = 90
"""From sm_90 on Triton passes host descriptors as tensor maps."""
ELF_MAGIC = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class Function:
    """A loaded kernel: its entry's name, its PTX and its dynamic shared memory in bytes."""

    name: str
    ptx: str
    shared_bytes: int


@lru_cache(maxsize=1024)
def load_function(name: str, binary: bytes | str, shared_bytes: int) -> Function:
    """The kernel in what Triton calls the binary, which is PTX text here.

    Raises:
        UsageError: for a real cubin, compiled before the activation.
    """
    if isinstance(binary, bytes):
        if binary.startswith(ELF_MAGIC):
            raise UsageError(
                f"kernel '{name}' was compiled to a cubin before triptych's driver was activated",
                hint="activate first, then compile",
            )
        binary = binary.decode()
    return Function(name, binary, shared_bytes)


def make_loading(load: Callable[[Any], None]) -> Callable[[Any], None]:
    """`CompiledKernel._init_handles`, which loads a kernel that has no module yet, as ours never have: once for all."""

    def load_once(kernel: Any) -> None:  # noqa: ANN401  triton's CompiledKernel
        if type(getattr(kernel, "_run", None)) is not Launcher:
            load(kernel)

    return load_once


def _nothing() -> None:
    """What a launch gives that is not run again."""


class Launcher:
    """One compiled kernel's launches, called as Triton 3.6 to 3.9 call their own launchers."""

    def __init__(self, source: Source, metadata: Metadata, clock: Clock, repeats: Repeats) -> None:
        """Raises `UnsupportedFeature` for a kernel that Triton instrumented."""
        self._signature = source.signature
        self._plain = plain_parameters(source.signature)
        self._metadata = metadata
        self._clock = clock
        self._repeats = repeats
        if metadata.profile_scratch_size or "gsan" in str(getattr(metadata, "instrumentation_mode", "")):
            raise UnsupportedFeature(
                f"kernel '{metadata.name}' carries Triton's own instrumentation (Proton, GSan)",
                hint="compile without it: triptych counts and checks by itself",
            )

    def __call__(self, *values: object) -> None:
        """Runs the kernel to its end; a grid without blocks is no launch, as on a GPU, and a warning says so."""
        call = LaunchCall.of(values)
        grid = self._grid(*call.grid)
        if 0 in grid:
            warn_at_launch(
                f"grid {grid} of kernel '{self._metadata.name}' has no blocks: nothing is launched, as on a GPU"
            )
            return
        if call.enter_hook is not None:
            call.enter_hook(call.launch_metadata)
        if self._repeats.wanted:
            what = self, grid, kind_of(call.arguments)
            self._repeats.run(self._metadata.name, what, lambda: self._launch(call, grid), lambda _: _nothing)
        else:
            self._launch(call, grid)
        if call.exit_hook is not None:
            call.exit_hook(call.launch_metadata)

    def _launch(self, call: LaunchCall, grid: tuple[int, int, int]) -> None:
        scratch = self._scratch(grid)
        launch = self._make_launch(call.function, grid, call.arguments, scratch)
        self._run(call.function, launch, remarks_on_gaps(self._metadata.name, launch, call.arguments))

    def _grid(self, *extents: Any) -> tuple[int, int, int]:  # noqa: ANN401  whatever the user's grid holds
        try:
            x, y, z = (index(extent) for extent in extents)
        except TypeError:
            raise LaunchError(
                f"grid {extents} of kernel '{self._metadata.name}': expected whole numbers",
                where=launching_line(),
                hint="triton.cdiv(n, BLOCK) divides and rounds up",
            ) from None
        if min(x, y, z) < 0:
            raise LaunchError(
                f"grid {(x, y, z)} of kernel '{self._metadata.name}': expected no negative extent",
                where=launching_line(),
            )
        return x, y, z

    def _make_launch(
        self, function: Function, grid: tuple[int, int, int], values: tuple[object, ...], scratch: object
    ) -> Launch:
        metadata = self._metadata
        pairs = self._pairs(values)
        explicit = [convert(*pair) for pair in pairs]
        return Launch(
            program=function.name,
            entry=function.name,
            grid=(grid[0] * metadata.num_ctas, grid[1], grid[2]),
            block=(WARP_SIZE * metadata.num_warps, 1, 1),
            arguments=with_scratch(explicit, NULL if scratch is None else bind(scratch), NULL),
            shared_bytes=function.shared_bytes,
            cluster=(metadata.num_ctas, 1, 1),
            cooperative=bool(metadata.launch_cooperative_grid),
            names=tuple([parameter.name for parameter, _ in pairs]),
        )

    def _pairs(self, values: tuple[object, ...]) -> list[tuple[Parameter, object]]:
        """The kernel's parameters with their values."""
        if self._plain is not None and len(values) == len(self._signature):
            return [(parameter, values[place]) for place, parameter in self._plain]
        has_maps = self._metadata.target.arch >= FIRST_TENSOR_MAP_ARCHITECTURE
        return list(expand(self._signature, values, iter(self._metadata.tensordesc_meta) if has_maps else None))

    def _scratch(self, grid: tuple[int, int, int]) -> object:
        """The kernel's global scratch, None where it wants none; it must live until the launch is over."""
        metadata = self._metadata
        if not metadata.global_scratch_size:
            return None
        blocks = grid[0] * grid[1] * grid[2] * metadata.num_ctas
        return global_scratch(blocks * metadata.global_scratch_size, metadata.global_scratch_align)

    def _run(self, function: Function, launch: Launch, remarks: tuple[str, ...]) -> None:
        target = f"sm_{self._metadata.target.arch}"
        program = Program.of(TRITON, function.ptx, target)
        report = run_launch_here(program, launch, memory(), remarks)
        if memory().recorder is None:  # what is recorded takes no time
            self._clock.add(report)
