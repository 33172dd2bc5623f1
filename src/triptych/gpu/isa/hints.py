"""What tells the hardware something and changes no value: fences, cache hints, and hints to the scheduler.

Every access of a thread takes effect in program order here, caches are not modelled, and kernels run alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import U64

_SCOPES = "cta cluster gpu sys"
_LOW = "L2::evict_first L2::evict_unchanged"
_PRIORITIES: Sequence[tuple[str, Mapping[str, str]]] = (
    (".primary", {"primary": f"L2::evict_last L2::evict_normal {_LOW}"}),
    (".primary.secondary", {"primary": "L2::evict_last L2::evict_normal", "secondary": _LOW}),
    (".primary.secondary", {"primary": _LOW, "secondary": _LOW}),
)
"""The priority of a part of the accesses, and that of the rest where it is not normal."""


def _hint(
    syntax: str, section: str, summary: str, groups: Mapping[str, str] | None = None,
    needs: str | Mapping[str, str] = "",
) -> None:  # fmt: skip
    def nothing(m: Machine[V], f: Form, *operands: V) -> None:
        return

    nothing.__doc__ = summary
    pipe = Pipe.LOAD_STORE if "[a]" in syntax else Pipe.CONTROL
    row(syntax, section=section, pipe=pipe, groups=groups, effect=Effect.ORDER, needs=needs)(nothing)


# --- Order (PTX manual, 9.7.13.4) ---------------------------------------------------------------------------------

_PROXIES = "Orders accesses of different kinds to the same memory; here they already take effect in program order."


def _order(m: Machine[V], f: Form) -> None:
    """Orders memory accesses."""
    m.fence()


_fence = partial(row, section="9.7.13.4", pipe=Pipe.CONTROL, effect=Effect.ORDER)
_LATER: Mapping[str, str] = dict.fromkeys(("cluster", "acquire", "release"), "sm_90")
_fence("fence.scope", groups={"scope": _SCOPES}, needs=_LATER)(_order)
_fence("fence.order.scope", groups={"order": "sc acq_rel acquire release", "scope": _SCOPES}, needs=_LATER)(_order)
for _form in ("acquire.sync_restrict::shared::cluster", "release.sync_restrict::shared::cta", "mbarrier_init.release"):
    _fence(f"fence.{_form}.cluster", needs="sm_90")(_order)
_fence("membar.level", groups={"level": "cta gl sys"})(_order)
for _mnemonic in ("fence", "membar"):
    _hint(f"{_mnemonic}.proxy.alias", "9.7.13.4", _PROXIES)
_hint("membar.proxy.async", "9.7.13.4", _PROXIES, needs="sm_90")
_spaces = {"space": "global shared::cta shared::cluster"}
_hint("fence.proxy.async{.space}", "9.7.13.4", _PROXIES, _spaces, "sm_90")
for _form in ("acquire.sync_restrict::shared::cluster", "release.sync_restrict::shared::cta"):
    _hint(f"fence.proxy.async::generic.{_form}.cluster", "9.7.13.4", _PROXIES, needs="sm_90")


# --- Caches -------------------------------------------------------------------------------------------------------

_NEAR = "Brings a line near; without an effect on values."
_hint("prefetch{.space}.level [a]:u64", "9.7.9.15", _NEAR, {"space": "global local", "level": "L1 L2"})
_hint("prefetch{.global}.level [a]:u64", "9.7.9.15", _NEAR, {"level": "L2::evict_last L2::evict_normal"}, "sm_80")
_hint("prefetchu.L1 [a]:u64", "9.7.9.15", _NEAR)
_hint(
    "applypriority{.global}.L2::evict_normal [a]:u64, size:u32",
    "9.7.9.16",
    "Changes a line's priority in the cache.",
    needs="sm_80",
)
_FORGET = "Lets the cache forget a line; its bytes stay as they are."
_hint("discard{.global}.L2 [a]:u64, size:u32", "9.7.9.17", _FORGET, needs="sm_80")


def _policy(m: Machine[V], f: Form, *operands: V) -> V:
    """d = a cache policy: opaque, and here always the same, since caches are not modelled."""
    return m.constant(U64, 0)


_policies = partial(row, section="9.7.9.18", pipe=Pipe.INTEGER, needs="sm_80")
for _names, _groups in _PRIORITIES:
    _policies(f"createpolicy.fractional{_names}.b64 d, fraction:f32?", groups=_groups)(_policy)
    _policies(
        f"createpolicy.range{{.global}}{_names}.b64 d, [a]:u64, primary_size:u32, total_size:u32", groups=_groups
    )(_policy)
_policies("createpolicy.cvt.L2.b64 d, property:b64")(_policy)


# --- The scheduler ------------------------------------------------------------------------------------------------

_hint("nanosleep.u32 t:u32", "9.7.19.2", "Lets the thread sleep; time does not pass here.")
_hint("pmevent{.mask} a:u32", "9.7.19.3", "Triggers performance monitor events; nothing listens.")
_DEPENDENTS = "Waits for the kernels before, or lets those behind start; kernels run one after another here."
_hint("griddepcontrol.action", "9.7.13.13", _DEPENDENTS, {"action": "launch_dependents wait"}, "sm_90")
_hint(
    "setmaxnreg.action.sync.aligned.u32 count:u32", "9.7.19.5",
    "Gives registers back or asks for more; their number does not matter here.", {"action": "inc dec"},
    "sm_90a sm_100f sm_110f sm_120f",
)  # fmt: skip
