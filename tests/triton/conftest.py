"""Fixtures for Triton kernels: the driver active on a pinned chip and target, and a machine that only records."""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from triptych.core.counters import Counter, Counters, Provenance
from triptych.core.handles import Handle, Storage
from triptych.core.launches import Account, Observed
from triptych.core.plan import Launch, Program
from triptych.execution import nodes
from triptych.execution.host_memory import Bytes
from triptych.gpu import DeviceMemory
from triptych.languages.triton import activate

sys.path.insert(0, str(Path(__file__).parent))  # the tests share `product_kernels.py`, which is no test


@pytest.fixture(scope="session", autouse=True)
def triton_cache(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """Triton's disk cache of this test run alone."""
    folder = tmp_path_factory.mktemp("triton-cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture
def active() -> Generator[None]:
    """The driver, on an A100 compiling for sm_80."""
    with activate(chip="a100", target="sm_80"):
        yield


@dataclass
class Recorder:
    programs: list[Program] = field(default_factory=list[Program])
    launches: list[Launch] = field(default_factory=list[Launch])

    def execute(self, program: Program, launch: Launch, memory: Mapping[Storage, Bytes], _: DeviceMemory) -> Observed:
        self.programs.append(program)
        self.launches.append(launch)
        assert all(argument.storage in memory for argument in launch.arguments if isinstance(argument, Handle))
        moved = launch.grid[0] * launch.block[0] * 4
        counters = Counters({"global.load.compulsory_bytes": Counter(moved, "bytes", Provenance.COUNTED_PTX)})
        return Observed(Account.of(counters))


@pytest.fixture
def recorder(active: None, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """The recording machine in place of the real one."""
    recording = Recorder()
    monkeypatch.setattr(nodes, "execute", recording.execute)
    return recording
