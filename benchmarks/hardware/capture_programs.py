"""What triptych's kernels would launch: programs and launches of `program_cases.py` as one plan, before any runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import ml_dtypes
import numpy as np
from plain_functions import with_plain_functions
from program_cases import Case

import triptych.kernels.cuda as cuda_kernels
import triptych.kernels.triton as triton_kernels
import triptych.languages.triton as triton_language
from triptych.core.counters import Counters
from triptych.core.handles import Storage
from triptych.core.launches import Account, Observed
from triptych.core.plan import Launch, Plan, Program
from triptych.execution import nodes
from triptych.execution.host_memory import Bytes
from triptych.gpu import DeviceMemory

_MODULES: Mapping[str, Any] = {"cuda": cuda_kernels, "triton": triton_kernels}
_DTYPES: Mapping[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
_CHIPS = {"sm_80": "a100", "sm_90": "h100"}


@dataclass
class Recorder:
    """A machine that notes what it is given, and runs nothing."""

    programs: dict[str, Program] = field(default_factory=dict[str, Program])
    launches: list[Launch] = field(default_factory=list[Launch])
    plain: bool = False

    def execute(self, program: Program, launch: Launch, memory: Mapping[Storage, Bytes], _: DeviceMemory) -> Observed:
        """Notes a program, by a digest of its text, and its launch."""
        if self.plain:
            program = replace(program, text=with_plain_functions(program.text))
        name = hashlib.sha256(program.text.encode()).hexdigest()[:16]
        self.programs[name] = program
        assert all(handle.storage in memory for handle in launch.handles)
        self.launches.append(replace(launch, program=name))
        return Observed(Account.of(Counters({})))


def capture(cases: Sequence[Case]) -> Plan:
    """A plan of one launch for each case; its storages are the inputs, in their order, then the outputs."""
    recorder, alive = Recorder(), list[object]()
    with patch.object(nodes, "execute", recorder.execute):
        for case in cases:
            recorder.plain = case.plain
            inputs = [bits.view(_DTYPES[case.dtype]) for bits in case.inputs()]
            alive.append(inputs)  # else another array may get their place
            alive.append(_call(case, inputs))
    assert len(recorder.launches) == len(cases)
    return Plan(tuple(recorder.launches), recorder.programs)


def _call(case: Case, inputs: Sequence[Any]) -> object:
    language, name = case.kernel.split(".")
    function = getattr(_MODULES[language], name)
    options: dict[str, Any] = {"causal": case.causal} if case.is_attention else {}
    if not case.target:  # sums as tensor cores leave them: rounded ones would hide what they are
        return function(*inputs, **options if case.is_attention else {"out_dtype": "f32"})
    with triton_language.activate(chip=_CHIPS[case.target], target=case.target):
        return function(*inputs, **options)
