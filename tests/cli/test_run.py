"""`triptych run`: the script's output and status are its own; the report follows; every launch is in the JSON."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from command import START, script, triptych

from triptych.report import schema

N = 1 << 20
VEC_ADD = (
    "import sys",
    "import numpy as np",
    "import triptych as tt",
    "source = '''",
    'extern "C" __global__ void vec_add(const float *a, const float *b, float *c, int n) {',
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;",
    "    if (i < n) c[i] = a[i] + b[i];",
    "}'''",
    "def main(n, m):",
    "    a, b, c = np.ones(n, np.float32), np.ones(n, np.float32), np.zeros(n, np.float32)",
    "    tt.cuda.compile(source)['vec_add'][(m // 256,), (256,)](a, b, c, m)",
    "    print('sum', float(c.sum()))",
)


def validated(text: str) -> dict[str, Any]:
    value = json.loads(text)
    validator: Any = jsonschema.Draft202012Validator(schema())
    validator.validate(value)
    return value


def test_a_script_without_kernels(tmp_path: Path) -> None:
    path = script(tmp_path, "import sys", "print('hello', sys.argv[1:])", "print('aside', file=sys.stderr)")
    done = triptych("run", path, "--chip", "3", "-x", "--json")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "hello ['--chip', '3', '-x', '--json']"
    assert "launched no kernel" in done.stdout
    notice = "stands behind SCRIPT, so the script gets it; ours stand before SCRIPT\n"
    assert done.stderr == f"triptych: notice: --chip {notice}triptych: notice: --json {notice}aside\n"


def test_a_script_without_triton_does_not_load_it(tmp_path: Path) -> None:
    path = script(tmp_path, "import sys", "print([name for name in ('triton', 'torch') if name in sys.modules])")
    assert triptych("run", path).stdout.splitlines()[0] == "[]"


def test_a_launch_is_reported_after_the_scripts_output(tmp_path: Path) -> None:
    done = triptych("run", script(tmp_path, *VEC_ADD, f"main({N}, {N})"), COLUMNS="80")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sum 2097152.0\n")
    for figure in ("vec_add", "4096", "1.05 M", "12 MiB", "0.0833", "memory", "modelled"):
        assert figure in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_what_is_no_terminal_has_120_columns(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [*START, "run", script(tmp_path, *VEC_ADD, "main(1024, 1024)")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert 100 < max(map(len, done.stdout.splitlines())) <= 120


def test_json_alone_on_standard_output(tmp_path: Path) -> None:
    late = "import atexit, os; atexit.register(print, 'late'); os.system('echo child')"
    done = triptych("run", "--json", "-", script(tmp_path, *VEC_ADD, late, f"main({N}, {N})"))
    assert done.returncode == 0, done.stderr
    (launch,) = validated(done.stdout)["launches"]
    assert "sum 2097152.0" in done.stderr
    assert "child" in done.stderr
    assert "late" in done.stderr
    assert launch["kernel"] == "vec_add"
    assert (launch["chip"], launch["target"], launch["language"]) == ("h100", "sm_90", "cuda")
    assert (launch["grid"], launch["block"]) == ([4096, 1, 1], [256, 1, 1])
    roofline = launch["roofline"]
    assert roofline["flops"] == N
    assert roofline["bytes"] == 8388608 + 4194304
    assert roofline["intensity"] == 1 / 12
    assert roofline["bound"] == "memory"
    assert launch["counters"]["global.load.sectors"]["value"] == 2 * N // 8


def test_json_into_a_file_with_chip_and_target(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    path = script(tmp_path, *VEC_ADD, "main(1024, 1024)")
    done = triptych("run", "--chip", "a100-80", "--target", "sm_80", "--check", "memcheck", "--json", str(file), path)
    assert done.returncode == 0, done.stderr
    (launch,) = validated(file.read_text(encoding="utf-8"))["launches"]
    assert (launch["chip"], launch["target"]) == ("a100-80", "sm_80")
    assert "vec_add" in done.stdout


def test_v100_says_what_it_is_compiled_for(tmp_path: Path) -> None:
    done = triptych("run", "--chip", "v100", script(tmp_path, *VEC_ADD, "main(1024, 1024)"))
    assert done.returncode == 0, done.stderr
    assert "Compilers no longer target compute capability 7.0" in " ".join(done.stdout.split())


def test_an_access_out_of_bounds_is_an_error(tmp_path: Path) -> None:
    path = script(tmp_path, *VEC_ADD, "main(1024, 1024)", "main(1024, 2048)")
    done = triptych("run", "--json", "-", path)
    assert done.returncode == 1
    assert "sum 2048.0" in done.stderr
    assert "MemoryFault" in done.stderr
    assert f'File "{path}"' in done.stderr
    assert "src/triptych" not in done.stderr
    value = validated(done.stdout)
    right, stopped = value["launches"]
    assert not right["findings"]
    (finding,) = stopped["findings"]
    assert (finding["check"], finding["file"], finding["line"]) == ("memcheck", path, 7)
    assert (finding["thread"], finding["block"]) == ([0, 0, 0], [4, 0, 0])
    assert "memcheck" in right["checks"]
    assert right["checks"] == stopped["checks"]
    assert (right["stopped"], stopped["stopped"], stopped["roofline"], stopped["model"]) == (False, True, None, {})
    assert (finding["access"], finding["space"], finding["bytes"]) == ("load", "global", 4)
    assert isinstance(finding["address"], int)
    assert finding["allocation"]
    assert "compare the index" in finding["hint"]
    assert value["clean"] is False
    assert (value["exit_status"], value["error"]["kind"]) == (1, "MemoryFault")
    assert (value["error"]["file"], value["error"]["line"]) == (path, 7)


@pytest.mark.parametrize(("line", "status"), [("sys.exit(5)", 5), ("sys.exit('no')", 1), ("1 / 0", 1)])
def test_the_scripts_own_status_is_kept(line: str, status: int, tmp_path: Path) -> None:
    done = triptych("run", script(tmp_path, "import sys", "print('before')", line))
    assert done.returncode == status
    assert done.stdout.startswith("before\n")


def test_its_status_is_in_the_json(tmp_path: Path) -> None:
    done = triptych("run", "--json", "-", script(tmp_path, "raise SystemExit(7)"), "--n", "3")
    value = validated(done.stdout)
    assert (done.returncode, value["exit_status"], value["arguments"]) == (7, 7, ["--n", "3"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--check", "memchek"), "unknown check 'memchek'\n  did you mean memcheck"),
        (
            ("--check", "initcheck,what"),
            "unknown check 'what'\n  known: assert, asynccheck, budget, deadlock, initcheck",
        ),
        (("--check", ""), "check='' names no check"),
        (("--target", "sm_42"), "unknown compile target 'sm_42'\n  did you mean sm_75 or sm_80 or sm_86?"),
        (("--chip", "h101"), "unknown chip 'h101'"),
        (("--json", "/nowhere/at/all.json"), "cannot write JSON"),
    ],
)
def test_usage_errors_come_before_the_script_runs(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = triptych("run", *options, script(tmp_path, "print('ran')"))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"triptych: {message}")
    assert "Traceback" not in done.stderr


def test_a_check_without_a_launch_for_it_is_said(tmp_path: Path) -> None:
    path = script(tmp_path, *VEC_ADD, "main(1024, 1024)")
    done = triptych("run", "--check", "racecheck,memcheck", path)
    assert done.returncode == 0, done.stderr
    assert "No launch was one for racecheck, which works on the NeuronCore." in " ".join(done.stdout.split())


def test_the_help_lists_the_checks() -> None:
    help_text = " ".join(triptych("run", "--help", COLUMNS="300").stdout.replace("│", " ").split())
    assert "On the GPU always on: memcheck, assert, trap, budget, deadlock, synccheck" in help_text
    assert (
        "On the NeuronCore always on: memcheck, budget, deadlock; on by default: initcheck, outputcheck, racecheck"
        in help_text
    )
    assert "Triptych's own options stand before SCRIPT." in help_text


def test_a_script_that_is_not_there() -> None:
    done = triptych("run", "none.py")
    assert done.returncode == 2
    assert "cannot read the script 'none.py'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_forked_child_reports_nothing(tmp_path: Path) -> None:
    lines = "import os, sys", "child = os.fork()", "if child == 0: sys.exit(3)", "print(os.waitpid(child, 0)[1] >> 8)"
    done = triptych("run", script(tmp_path, *lines))
    assert done.stdout.splitlines()[0] == "3"
    assert done.stdout.count("launched no kernel") == 1


@pytest.mark.parametrize(("status", "left"), [(0, 0), (7, 7), (-1, 255)])
def test_a_script_that_leaves_at_once_is_reported(status: int, left: int, tmp_path: Path) -> None:
    lines = f"main({N}, {N})", "import os", f"os._exit({status})", "raise ValueError"
    done = triptych("run", "--json", "-", script(tmp_path, *VEC_ADD, *lines))
    assert done.returncode == left
    value = validated(done.stdout)
    assert (value["exit_status"], value["clean"], len(value["launches"])) == (left, True, 1)


def test_leaving_at_once_from_a_thread_a_child_and_with_findings(tmp_path: Path) -> None:
    child = "import os, threading", "child = os.fork()", "if child == 0: os._exit(5)", "print(os.waitpid(child, 0)[1])"
    fault = "try: main(1000, 1024)", "except tt.MemoryFault: print('caught')"
    leave = "threading.Thread(target=os._exit, args=(0,)).start()", "import time", "time.sleep(60)"
    done = triptych("run", script(tmp_path, *VEC_ADD, *child, *fault, *leave))
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == [str(5 << 8), "caught"]
    assert done.stdout.count("error memcheck in vec_add") == 1


def test_what_cannot_be_left_with_is_no_end(tmp_path: Path) -> None:
    done = triptych("run", script(tmp_path, "import os", "try: os._exit('x')", "except TypeError: print('refused')"))
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "refused")
    assert done.stdout.count("launched no kernel") == 1


def test_a_compile_error_ends_the_script_and_not_the_launches(tmp_path: Path) -> None:
    done = triptych("run", "--json", "-", script(tmp_path, "import triptych as tt", "tt.cuda.compile('int x = ;')"))
    value = validated(done.stdout)
    assert (done.returncode, value["exit_status"], value["clean"], value["error"]["kind"]) == (
        1,
        1,
        True,
        "CompileError",
    )
    done = triptych("run", script(tmp_path, "raise ValueError"))
    assert "the script ended with an error before any kernel had run to its end." in done.stdout


def test_control_c_is_one_line(tmp_path: Path) -> None:
    path = script(tmp_path, "import time", "print('ready', flush=True)", "time.sleep(60)")
    process = subprocess.Popen(
        [*START, "run", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert error == "triptych: interrupted\n"


SPIN = (
    "spin = tt.cuda.compile('''",
    'extern "C" __global__ void spin(const float *p, float *q) {',
    "    float v = 0.0f;",
    "    for (int i = 0; i >= 0; i = (i + 1) & 1023) v += p[i & 7];",
    "    q[0] = v;",
    "}\\n''')['spin']",
    "import os, signal",
    "from contextlib import nullcontext",
    "from triptych.core.progress import listening",
    "def stop(done, total): os.kill(os.getpid(), signal.SIGINT)",
    "with listening(lambda kernel: nullcontext(stop)): spin[1, 32](np.ones(8, np.float32), np.ones(8, np.float32))",
)
"""A kernel that ends with the interruption that its own progress sends."""


def test_control_c_keeps_the_launches_that_ended(tmp_path: Path) -> None:
    files = {kind: tmp_path / f"x.{kind}" for kind in ("json", "html", "trace")}
    options = [text for kind, file in files.items() for text in (f"--{kind}", str(file))]
    path = script(tmp_path, *VEC_ADD, "main(1024, 1024)", *SPIN)
    done = triptych("run", *options, path, TRIPTYCH_BUDGET=str(1 << 40))
    assert done.returncode == 130
    assert done.stderr == "triptych: interrupted while kernel 'spin' ran\n"
    assert done.stdout.startswith("sum 2048.0\n")
    assert "vec_add" in done.stdout
    value = validated(files["json"].read_text(encoding="utf-8"))
    assert [launch["kernel"] for launch in value["launches"]] == ["vec_add"]
    assert (value["exit_status"], value["clean"], value["error"]["kind"]) == (130, True, "LaunchInterrupted")
    assert value["error"]["message"] == "interrupted while kernel 'spin' ran"
    assert "interrupted while kernel &#39;spin&#39; ran" in files["html"].read_text(encoding="utf-8")
    assert "vec_add" in files["trace"].read_text(encoding="utf-8")


def test_triton_is_active_in_a_script_that_imports_it(tmp_path: Path) -> None:
    lines = (
        "import numpy as np, triton, triton.language as tl",
        "@triton.jit",
        "def double(x, n, BLOCK: tl.constexpr):",
        "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
        "    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)",
        "x = np.ones(1000, np.float32)",
        "double[(1,)](x, 1000, BLOCK=1024)",
        "print(x.sum())",
    )
    # A cache of its own: Triton's key leaves out where a source lies, and its PTX keeps the path of the first.
    cache = str(tmp_path / "cache")
    done = triptych("run", "--json", "-", script(tmp_path, *lines), TRITON_CACHE_DIR=cache)
    assert done.returncode == 0, done.stderr
    assert "2000.0" in done.stderr
    (launch,) = validated(done.stdout)["launches"]
    assert (launch["kernel"], launch["language"]) == ("double", "triton")
    assert {line["file"] for line in launch["lines"]} == {str(tmp_path / "script.py")}


def test_nki_is_active_in_a_script_that_imports_it(tmp_path: Path) -> None:
    lines = (
        "import numpy as np, nki, nki.isa as nisa, nki.language as nl",
        "@nki.jit",
        "def double(x):",
        "    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)",
        "    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)",
        "    nisa.dma_copy(dst=tile, src=x)",
        "    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)",
        "    nisa.dma_copy(dst=y, src=tile)",
        "    return y",
        "print(np.asarray(double(np.ones((128, 64), np.float32))).sum())",
    )
    done = triptych("run", "--json", "-", script(tmp_path, *lines))
    assert done.returncode == 0, done.stderr
    assert "16384.0" in done.stderr
    (launch,) = validated(done.stdout)["launches"]
    assert (launch["kernel"], launch["language"], launch["chip"]) == ("double", "nki", "trn2")


def test_what_the_simulator_of_aws_accepts_is_a_finding_when_lenient(tmp_path: Path) -> None:
    """No engine divides: AWS's compiler refuses it, its simulator computes it."""
    kernel = (
        "import numpy as np, nki, nki.language as nl",
        "@nki.jit",
        "def halve(a):",
        "    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)",
        "    held = nl.load(a)",
        "    nl.store(out, nl.divide(held, nl.add(held, held)))",
        "    return out",
        "print(halve(np.ones((4, 4), np.float32)).sum())",
    )
    strict = triptych("run", script(tmp_path, *kernel))
    assert strict.returncode == 1
    assert "nl.divide has no hardware instruction" in strict.stderr
    lenient = triptych("run", "--lenient", "--json", "-", script(tmp_path, *kernel))
    assert lenient.returncode == 1, "there is a finding"
    (launch,) = validated(lenient.stdout)["launches"]
    assert [finding["check"] for finding in launch["findings"]] == ["nki.compiler"]
    assert "8.0" in lenient.stderr
