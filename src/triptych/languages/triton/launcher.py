"""From Triton's launch to the machine's: `Launcher` stands where Triton's own CUDA launcher would."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, NamedTuple

from triptych.core.errors import LaunchError, UnsupportedFeature
from triptych.core.gpu_facts import WARP_SIZE
from triptych.core.languages import TRITON
from triptych.core.plan import Launch, Program
from triptych.execution.memory import memory
from triptych.execution.run import run_launch_here
from triptych.languages.triton.arguments import NULL, Parameter, convert, expand, plain_parameters
from triptych.languages.triton.arrays import bind, bound
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
from triptych.languages.triton.loading import Function, SimulatedLauncher
from triptych.languages.triton.repeats import Repeats, kind_of
from triptych.languages.triton.specialisation import PLAIN

FIRST_TENSOR_MAP_ARCHITECTURE = 90
"""From sm_90 on Triton passes host descriptors as tensor maps."""


def _nothing() -> None:
    """What a launch gives that is not run again."""


class _Ready(NamedTuple):
    """A launch with all that is said of it; arrays that are passed again are the same handles."""

    program: Program
    launch: Launch
    remarks: tuple[str, ...]


_MOST_READY = 256
"""Of one compiled kernel: the launches that are kept, for loops that make the same ones again."""


class Launcher(SimulatedLauncher):
    """One compiled kernel's launches, called as Triton 3.6 to 3.9 call their own launchers."""

    def __init__(self, source: Source, metadata: Metadata, clock: Clock, repeats: Repeats) -> None:
        """Raises `UnsupportedFeature` for a kernel that Triton instrumented."""
        self._signature = source.signature
        self._plain = plain_parameters(source.signature)
        self._pointers = [place for place, parameter in self._plain or () if parameter.is_pointer]
        self._numbers = [place for place, parameter in self._plain or () if not parameter.is_pointer]
        self._ready: dict[tuple[object, ...], _Ready] = {}
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
        arguments, key = self._recognise(call, grid)
        ready = self._ready.get(key) if key is not None else None
        if ready is not None:
            self._run(ready)
            return
        scratch = self._scratch(grid)
        launch = self._make_launch(call.function, grid, arguments, scratch)
        program = Program.of(TRITON, call.function.ptx, f"sm_{self._metadata.target.arch}")
        ready = _Ready(program, launch, remarks_on_gaps(self._metadata.name, launch, call.arguments))
        if key is not None:
            if len(self._ready) >= _MOST_READY:
                self._ready.clear()
            self._ready[key] = ready
        self._run(ready)
        del scratch  # it has lived until here

    def _recognise(
        self, call: LaunchCall, grid: tuple[int, int, int]
    ) -> tuple[Sequence[object], tuple[object, ...] | None]:
        """The arguments, handles for those arrays whose ones are known, and what tells the launch from others.

        That is None where it is not the handles, and plain numbers, alone. Constants are the compiled kernel's.
        """
        arguments = call.arguments
        if self._plain is None or len(arguments) != len(self._signature) or self._metadata.global_scratch_size:
            return arguments, None
        known = [*arguments]
        key: list[object] = [call.function, *grid]
        all_known = True
        for place in self._pointers:
            handle = bound(arguments[place])
            if handle is None:
                all_known = False
            else:
                known[place] = handle
                key.append(id(handle))  # no other's, as long as a launch has it
        for place in self._numbers:
            number = arguments[place]
            kind = type(number)
            all_known &= kind in PLAIN
            key.append(number if kind is int else repr(number))  # 0.0 is not -0.0
        return known, tuple(key) if all_known else None

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
        self, function: Function, grid: tuple[int, int, int], values: Sequence[object], scratch: object
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

    def _pairs(self, values: Sequence[object]) -> list[tuple[Parameter, object]]:
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

    def _run(self, ready: _Ready) -> None:
        here = memory()
        report = run_launch_here(ready.program, ready.launch, here, ready.remarks)
        if here.recorder is None:  # what is recorded takes no time
            self._clock.add(report)
