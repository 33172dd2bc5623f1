"""`--html` and `--trace`: files beside the report, refused before the script runs where they cannot be written."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from command import script, triptych

from triptych.cli.files import FileTarget
from triptych.cli.reports import Reports
from triptych.core.errors import UsageError

SCALE = (
    "import os, sys",
    "import numpy as np",
    "import triptych as tt",
    "scale = tt.cuda.compile('''",
    'extern "C" __global__ void scale(float *x, int n) {',
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;",
    "    if (i < n) x[i] *= 2.0f;  // <b>",
    "}''')['scale']",
    "x = np.ones(1024, np.float32)",
    "os.chdir('/')",
    "for n in (1024, 1024, 512): scale[(4,), (256,)](x, n)",
    "print('ran')",
)


def test_a_page_and_a_trace_beside_the_report(tmp_path: Path) -> None:
    path = script(tmp_path, *SCALE)
    done = triptych("run", "--html", "x.html", "--trace", "x.trace", "--json", "x.json", path, "<i>", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ran\n")
    assert "scale" in done.stdout
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count('<section class="launch"') == 2
    assert ">1–2</a>" in page
    assert "if (i &lt; n) x[i] *= 2.0f;  // &lt;b&gt;" in page
    assert "&lt;i&gt;" in page
    events = json.loads((tmp_path / "x.trace").read_text(encoding="utf-8"))["traceEvents"]
    assert [event["name"] for event in events if "counters" in event["args"]] == ["scale"] * 3
    assert len(json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["launches"]) == 3


def test_a_script_that_fails_has_its_page(tmp_path: Path) -> None:
    html = tmp_path / "x.html"
    path = script(tmp_path, *SCALE, "scale[(8,), (256,)](x, 2048)")
    done = triptych("run", "--json", "-", "--html", str(html), path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["kind"] == "MemoryFault"
    page = html.read_text(encoding="utf-8")
    assert "<strong>MemoryFault</strong> ended the script" in page
    assert "4 launches; exit status 1." in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--html", "/nowhere/at/all.html"), "cannot write HTML to /nowhere/at/all.html: No such file"),
        (("--trace", "/nowhere/at/all.json"), "cannot write a trace to /nowhere/at/all.json: No such file"),
        (("--html", "/"), "cannot write HTML to /: Is a directory"),
        (("--html", "-"), "--html takes a file, not -"),
        (("--trace", "-"), "--trace takes a file, not -"),
        (("--html", "same", "--trace", "./same"), "--html and --trace name the same file"),
        (("--json", "same", "--html", "same"), "--json and --html name the same file"),
    ],
)
def test_usage_errors_come_before_the_script_runs(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    path = script(tmp_path, "print('ran')")
    done = triptych("run", *options, path, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"triptych: {message}")
    assert len(done.stderr.splitlines()) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["script.py"]


def test_the_demo_refuses_too() -> None:
    done = triptych("demo", "--html", "-")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "--html takes a file" in done.stderr


def test_asking_leaves_a_file_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "old.html"
    file.write_text("old", encoding="utf-8")
    target = FileTarget("--html", "HTML", str(file))
    assert file.read_text(encoding="utf-8") == "old"
    target.write_text("new")
    assert file.read_text(encoding="utf-8") == "new"
    FileTarget("--html", "HTML", str(tmp_path / "none.html"))
    assert not (tmp_path / "none.html").exists()


def test_a_pipe_is_not_opened_before_it_is_written(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    FileTarget("--html", "HTML", str(pipe))  # opening it would wait for a reader
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_folder_that_goes_away_is_an_error_of_ours(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    target = FileTarget("--trace", "a trace", str(folder / "x.json"))
    folder.rmdir()
    with pytest.raises(UsageError, match=r"cannot write a trace to .*x\.json: No such file"):
        target.write_text("text")


def test_names_that_are_no_utf8_can_be_written(tmp_path: Path) -> None:
    files = {name: tmp_path / f"x.{name}" for name in ("json", "html", "trace")}
    reports = Reports.to(*map(str, files.values()))
    reports.write([], script="s\udcff.py", arguments=["\udc80"], exit_status=0)
    told = json.loads(files["json"].read_text(encoding="utf-8"))
    assert (told["script"], told["arguments"]) == ("s\udcff.py", ["\udc80"])
    assert "s\\udcff.py" in files["html"].read_text(encoding="utf-8")
    assert json.loads(files["trace"].read_text(encoding="utf-8"))["otherData"]["script"] == "s\udcff.py"


TWO = (
    "import numpy as np",
    "import triptych as tt",
    "module = tt.cuda.compile('''",
    'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }',
    'extern "C" __global__ void thrice(float *x) { x[threadIdx.x] *= 3.0f; }',
    "''')",
    "x = np.ones(64, np.float32)",
    "module['twice'][1, 32](x)",
    "module['thrice'][1, 32](x)",
    "print(x[0])",
)


def test_some_kernels_and_counters_alone(tmp_path: Path) -> None:
    path = script(tmp_path, *TWO)
    options = ("--kernel", "tw*", "--counters", "flops.f32,model.floor", "--json", "x.json", "--html", "x.html")
    done = triptych("run", *options, path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("6.0\n")  # both ran
    told = " ".join(done.stdout.split())
    assert "counters of twice (#1, launched at script.py:8)" in told
    assert "flops.f32 32 FLOPs counted on PTX model.floor" in told
    assert "counters of thrice" not in told
    assert "Not shown, since --kernel names others: thrice (1 launch)." in told
    (launch,) = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["launches"]
    assert (launch["kernel"], launch["call_site"]) == ("twice", {"file": path, "line": 8})
    assert f"launched at</dt><dd><bdi>{path}:8" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_a_hidden_kernel_with_a_finding_is_shown(tmp_path: Path) -> None:
    path = script(tmp_path, *TWO, "module['thrice'][1, 64](x[:32])")
    done = triptych("run", "--kernel", "twice", path)
    assert done.returncode == 1
    assert "warning viewcheck in thrice (#2)" in done.stdout
    assert "Not shown, since --kernel names others: thrice (1 launch)." in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--counters", "flops.f33"), "unknown counter 'flops.f33'\n  did you mean flops.f32"),
        (("--counters", ","), "',' names no counter"),
        (("--kernel", "regex:["), "'regex:[' is no regular expression"),
    ],
)
def test_patterns_are_looked_at_before_the_script_runs(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = triptych("run", *options, script(tmp_path, "print('ran')"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"triptych: {message}")
