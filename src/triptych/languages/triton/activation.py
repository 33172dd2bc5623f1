"""Switching triptych's Triton driver on and off: all that changes in Triton and torch, and how it is put back."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from types import TracebackType

from triptych.chips import ChipChoice, load
from triptych.execution.profile import Selection, select
from triptych.languages.after_import import AfterImport
from triptych.languages.triton import internals
from triptych.languages.triton.autotuning import AutotunerStates, make_prune, make_run
from triptych.languages.triton.backend.driver import TriptychDriver, fill
from triptych.languages.triton.benchmark import make_do_bench, make_do_bench_cudagraph
from triptych.languages.triton.devices import architecture_of, gpu_only
from triptych.languages.triton.driver import simulated_driver
from triptych.languages.triton.loading import make_loading
from triptych.languages.triton.registers import Figure, make_attribute, make_disassembler
from triptych.languages.triton.replacement import Replacement
from triptych.languages.triton.reports import make_run_of_report
from triptych.languages.triton.specialisation import make_specialiser
from triptych.languages.triton.stages import append_key, make_function_key, make_stage_hook
from triptych.languages.triton.torch_support import TorchSupport
from triptych.languages.triton.version import check_version


class Installation:
    """The driver in place of Triton's own, until `remove()`."""

    def __init__(self) -> None:
        """Installs it."""
        self._states = AutotunerStates()
        self._previous = internals.chosen_driver()
        self._set_fp_fusion = not internals.fp_fusion_is_set()
        if self._set_fp_fusion:
            internals.set_fp_fusion()
        self._replacements = self._replace()
        fill(simulated_driver)
        internals.set_driver(TriptychDriver())
        self._torch = TorchSupport(simulated_driver.clock)
        self._proton = AfterImport(internals.PROTON, self._replace_proton)
        self._proton.watch()

    def _replace_proton(self) -> None:
        home = import_module(f"{__package__}.proton")  # most programs do not profile
        library = internals.proton_library()
        for name, ours in home.functions(simulated_driver.clock, simulated_driver.device).items():
            self._replacements.append(Replacement.apply(library, name, lambda _, ours=ours: ours))

    def _replace(self) -> list[Replacement]:
        clock, apply = simulated_driver.clock, Replacement.apply
        replacements = [
            apply(internals.jit, "native_specialize_impl", make_specialiser),
            apply(internals.runtime_knobs, "add_stages_inspection_hook", make_stage_hook),
            apply(internals.jit.JITCallable, "cache_key", make_function_key),
            apply(internals.compiler.CompiledKernel, "_init_handles", make_loading),
            apply(internals.compiler.CompiledKernel, "n_regs", make_attribute("n_regs", Figure.REGISTERS)),
            apply(internals.compiler.CompiledKernel, "n_spills", make_attribute("n_spills", Figure.SPILLS)),
            apply(internals.compiler, "get_sass", make_disassembler),
            apply(internals.testing, "do_bench", lambda _: make_do_bench(clock)),
            apply(internals.testing, "do_bench_cudagraph", lambda _: make_do_bench_cudagraph(clock)),
            apply(internals.cuda_driver, "is_active", lambda _: staticmethod(lambda: False)),
            apply(internals.testing.Mark, "run", make_run_of_report),
            apply(internals.autotuner.Autotuner, "prune_configs", make_prune),
            apply(
                internals.autotuner.Autotuner,
                "run",
                lambda run: make_run(run, self._states, simulated_driver.current_device),
            ),
        ]
        if not internals.HOOK_HAS_CACHE_KEY:
            replacements.append(apply(internals.compiler, "get_cache_key", append_key))
        return replacements

    def remove(self) -> None:
        """Leaves Triton, and torch, as they were found."""
        self._torch.remove()
        self._proton.leave()
        internals.set_driver(self._previous)
        fill(None)
        for replacement in reversed(self._replacements):
            replacement.undo()
        if self._set_fp_fusion:
            internals.unset_fp_fusion()
        self._states.leave()


_installation: Installation | None = None


class Activation:
    """What `activate` gives back. As a context manager it puts back, at its end, what was in force before it."""

    def __init__(self, before: Selection | None) -> None:
        """`before` is the selection that was in force, `None` where the driver was not active."""
        self._before = before

    def __enter__(self) -> Activation:
        """The driver is active already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """The driver is as it was before `activate`."""
        if self._before is None:
            deactivate()
        else:
            _select(self._before)


def activate(chip: ChipChoice | None = None, target: str | None = None) -> Activation:
    """Makes Triton kernels run on triptych's machine from now on, or inside `with activate(): …` only.

    Kernels, autotuner, heuristics and `triton.testing` are used as they are; arguments may be numpy arrays, triptych
    arrays or torch tensors. A program that imports torch finds a CUDA device there, `cuda:0`, whose tensors lie in the
    host's memory; torch's operators run on the CPU. All times are modelled. With `TRITON_INTERPRET=1` Triton's own
    interpreter goes first, as it does on a GPU, and torch is left as it is.

    Args:
        chip: whose roofline, for the launches of every language: a name, a path of a TOML file, which is read now, or
            a chip; the settings' (`TRIPTYCH_CHIP`) where it is not said. That which a profile asks for goes first.
        target: the compile target (`sm_80`); the chip's own where it is not said.

    Raises:
        UnknownName: for a chip that there is not.
        UsageError: for a chip or a target that is no GPU's.
        UnsupportedFeature: where Triton is not installed, or too old.
    """
    check_version()
    if target is not None:
        architecture_of(target)
    active = _installation is not None
    before = _select(Selection(None if chip is None else gpu_only(load(chip)), target))
    return Activation(before if active else None)


@contextmanager
def activated() -> Generator[None]:
    """The driver is active in the block: as it is already, else with the chip and the target in force."""
    with nullcontext() if _installation is not None else activate():
        yield


def deactivate() -> None:
    """Leaves Triton as it was before `activate`; nothing where it was not active."""
    global _installation
    if _installation is not None:
        _installation.remove()
        _installation = None
        select(Selection())


def _select(selection: Selection) -> Selection:
    """Puts it in force, and the driver in place; what was in force before."""
    global _installation
    before = select(selection)
    if _installation is None:
        _installation = Installation()
    return before
