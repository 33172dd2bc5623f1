from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from triptych.chips import GpuChip, catalogue, load
from triptych.core.checks import CHECKS, in_force, names_of
from triptych.core.counters import Counter, Counters, Provenance
from triptych.core.errors import SettingError, UnknownName, UsageError
from triptych.core.launches import Account, LaunchRecord
from triptych.core.plan import LaunchShape
from triptych.core.settings import scope
from triptych.execution.launch_report import LaunchReport
from triptych.execution.profile import (
    Selection,
    active_checks,
    active_chip,
    active_target,
    current,
    profile,
    select,
)
from triptych.execution.records import record_launch


def launch(machine: str = "gpu", kernel: str = "k") -> LaunchRecord:
    counters = Counters({"flops.f32": Counter(1000, "FLOPs", Provenance.COUNTED_PTX)})
    target = {"gpu": "sm_80", "neuron": "trn2"}[machine]
    return LaunchRecord(kernel, machine, "ptx", target, LaunchShape((1, 1, 1), (32, 1, 1)), 0, Account.of(counters))


def test_settings_hold_where_no_profile_is_open() -> None:
    with scope(chip="a100-80", target=None):
        assert active_chip().name == "a100-80"
        assert active_target() == "sm_80"
    with scope(chip="h100", target="sm_80"):
        assert active_target() == "sm_80"
    assert current() is None
    assert active_checks("gpu") == in_force("gpu")


def test_profile_sets_chip_and_target() -> None:
    with scope(chip="h100", target="sm_80"):
        with profile(chip="a100-80") as outer:
            assert active_target() == "sm_80"
            with profile(chip="h100") as inner:
                assert (active_chip().name, active_target()) == ("h100", "sm_90")
                assert current() is inner
            assert current() is outer
        with profile():
            assert (active_chip().name, active_target()) == ("h100", "sm_80")
        with profile(target="sm_75"), profile():
            assert active_target() == "sm_75"
    with profile(chip=load("a100-80")):
        assert active_chip().name == "a100-80"


def test_a_file_stands_for_a_chip_wherever_its_name_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "mine"  # a path needs no suffix
    built_in = Path(catalogue.__file__).parent / "data" / "h100.toml"
    own.write_text(built_in.read_text(encoding="utf-8").replace('"h100"', '"mine"'), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for path in (own, Path("mine")):
        with profile(chip=path) as opened:
            assert opened.chip.name == "mine"
        with scope(chip=path):
            assert active_chip().name == "mine"
        select(Selection(load(path)))
        assert active_chip().name == "mine"
        select(Selection())
    monkeypatch.setenv("TRIPTYCH_CHIP", str(own))
    assert active_chip().name == "mine"


def test_what_stands_for_no_chip_is_refused_at_the_call() -> None:
    with pytest.raises(UsageError, match="a int, 5, stands for no chip"), profile(chip=cast("str", 5)):
        pass
    with pytest.raises(SettingError, match="chip=5: expected a name or the path of a file"), scope(chip=5):
        pass
    with pytest.raises(SettingError, match=r"expected a name$"), scope(target=Path("sm_80")):
        pass


def test_machine_without_a_chip_in_force_gets_its_default() -> None:
    with profile(chip="trn2"):
        assert active_chip().name == "trn2"
        gpu = active_chip("gpu")
        assert isinstance(gpu, GpuChip)
        assert active_target("gpu") == gpu.target
        assert active_target("neuron") == "trn2"
    with profile(chip="a100-80", target="sm_80"):
        assert active_chip("neuron").machine == "neuron"
        assert active_target("neuron").startswith("trn")


def test_nested_profiles_both_see_a_launch_each_with_its_own_chip() -> None:
    with profile(chip="a100-80") as outer:
        with profile(chip="h100") as inner:
            report = record_launch(launch())
        record_launch(launch("neuron"))
    assert inner.launches == [report]
    assert [(entry.chip.name, entry.record.machine) for entry in outer.launches] == [
        ("a100-80", "gpu"),
        ("trn2", "neuron"),
    ]
    assert report.roofline.floor_s < outer.launches[0].roofline.floor_s
    record_launch(launch())
    assert len(outer.launches) == 2


def test_report_shows_what_the_record_holds() -> None:
    with profile(chip="h100") as open_profile:
        report = record_launch(launch(kernel="saxpy"))
    assert (report.kernel, report.language, report.target) == ("saxpy", "ptx", "sm_80")
    assert (report.grid, report.block, report.findings, report.lines) == ((1, 1, 1), (32, 1, 1), (), ())
    assert report.counters.value("flops.f32") == 1000
    assert report.roofline is report.roofline
    assert repr(report) == "<saxpy grid=(1, 1, 1) block=(32, 1, 1) on h100>"
    assert open_profile.findings == ()
    assert repr(open_profile) == "<profile on h100: 1 launches, 0 findings>"
    assert repr(report.chip) == "<h100: NVIDIA H100 SXM5 80 GB>"
    assert len(repr(report.roofline)) < 200
    assert "floor" in repr(report.roofline)


def test_a_stopped_launch_has_no_roofline() -> None:
    stopped = LaunchReport(replace(launch(), stopped=True), load("h100"), ("a remark",))
    assert stopped.stopped
    assert stopped.notes == ("a remark",)
    with pytest.raises(UsageError, match="was stopped by a fault"):
        _ = stopped.roofline


def test_checks_are_known_by_name() -> None:
    with profile(check="memcheck") as one, profile() as inherited:
        assert one.checks == inherited.checks == ("memcheck",)
        assert names_of(active_checks("neuron")) == ("memcheck", "budget", "deadlock")
        with profile(check="initcheck, rangecheck"):
            assert names_of(active_checks("neuron")) == ("memcheck", "budget", "deadlock", "initcheck", "rangecheck")
            assert active_checks("gpu") == in_force("gpu", ())
    with profile(check=["memcheck", " memcheck "]) as twice:
        assert twice.checks == ("memcheck",)
    with profile(check=[]) as none:
        assert none.checks == ()
        assert names_of(active_checks("neuron")) == ("memcheck", "budget", "deadlock")
    with profile() as unsaid:
        assert unsaid.checks is None
        assert active_checks("neuron") == in_force("neuron")
    with profile(check=CHECKS) as every:
        assert every.checks == tuple(CHECKS)
    with pytest.raises(UnknownName, match="unknown check 'memchek'\n  did you mean memcheck"), profile(check="memchek"):
        pass
    with (
        pytest.raises(UnknownName, match="known: assert, asynccheck, budget, deadlock, initcheck, memcheck"),
        profile(check="zzz"),
    ):
        pass
    for nothing in ("", " , "):
        with pytest.raises(UsageError, match="names no check\n  known: memcheck, assert"), profile(check=nothing):
            pass


def test_unknown_chip() -> None:
    with pytest.raises(UnknownName, match="unknown chip 'h101'"), profile(chip="h101"):
        pass


def test_profile_of_one_thread_is_not_another_threads() -> None:
    seen: list[str] = []

    def work(chip: str) -> None:
        with profile(chip=chip) as mine:
            record_launch(launch())
            seen.append(f"{mine.launches[0].chip.name} {len(mine.launches)}")

    with profile(chip="h100") as outer:
        threads = [threading.Thread(target=work, args=(chip,)) for chip in ("a100-80", "h200", "a100-80")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(seen) == ["a100-80 1", "a100-80 1", "h200 1"]
    assert outer.launches == []


def test_profile_closes_when_the_block_fails() -> None:
    with pytest.raises(ZeroDivisionError), profile():
        _ = 1 // 0
    assert current() is None


def test_a_chip_that_cannot_run_a_launch_is_told() -> None:
    with profile(chip="trn2") as asked:
        report = record_launch(launch("gpu"))
        record_launch(launch("neuron"))
    assert report.chip.name == "h100"
    assert report.notes[0] == (
        f"{load('trn2').title} is not the GPU's: what ran there is placed on {load('h100').title}."
    )
    assert [len(seen.notes) - len(seen.roofline.notes) for seen in asked.launches] == [1, 0]
    with scope(chip=None), profile() as nobody:
        record_launch(launch("neuron"))
    assert nobody.launches[0].notes == nobody.launches[0].roofline.notes


def test_a_profile_that_names_no_chip_takes_the_innermost() -> None:
    with scope(chip=None), profile() as outer, profile(chip="a100-80"):
        record_launch(launch("gpu"))
    assert outer.launches[0].chip.name == "a100-80"
    assert outer.chip.name == "h100"


def test_a_target_of_another_machine_is_told() -> None:
    with scope(chip=None), profile(target="trn1") as asked:
        record_launch(launch("gpu"))
        record_launch(launch("neuron"))
    gpu, neuron = asked.launches
    assert gpu.remarks == ("The target trn1 is not the GPU's: what ran there was compiled for sm_80.",)
    assert neuron.remarks == ()
