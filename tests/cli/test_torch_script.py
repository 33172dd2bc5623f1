"""`triptych run` of an ordinary script for a GPU: torch's tensors on `cuda`, an autotuner, a benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import script, triptych

pytest.importorskip("torch")

LINES = """
import torch, triton, triton.language as tl

device = triton.runtime.driver.active.get_active_torch_device()
assert torch.cuda.is_available() and device.type == "cuda"

@triton.autotune([triton.Config({"BLOCK": block}, num_warps=1) for block in (32, 64)], key=["n"], reset_to_zero=["out"])
@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < n, other=0.0)))

x = torch.arange(100, dtype=torch.float32, device=device)
out = torch.zeros(1, device="cuda")
total[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, out, 100)
torch.testing.assert_close(out, x.sum(0, keepdim=True))
print(out, total.best_config.kwargs, triton.testing.do_bench(lambda: x + x) > 0)
""".strip().splitlines()


def test_it_runs_unmodified(tmp_path: Path) -> None:
    path, file = script(tmp_path, *LINES), tmp_path / "run.json"
    done = triptych("run", "--json", str(file), path, TRIPTYCH_CHIP="a100", TRITON_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    first, *report = done.stdout.splitlines()
    assert first == "tensor([4950.], device='cuda:0') {'BLOCK': 32} True"
    assert "autotuning of total on NVIDIA A100 SXM4 80 GB: 2 configurations" in report
    table = report[report.index("autotuning of total on NVIDIA A100 SXM4 80 GB: 2 configurations") :]
    rows = [line for line in table if line.startswith("BLOCK=")]
    assert [row.split()[0] for row in rows] == ["BLOCK=32", "BLOCK=64"]
    (tuning,) = json.loads(file.read_text())["tunings"]
    tried = tuning["configurations"]
    assert [configuration["label"].split()[0] for configuration in tried] == ["BLOCK=32", "BLOCK=64"]
    assert tuning["chosen"] == min(tried, key=lambda configuration: configuration["estimate_s"])["label"]
    assert (tuning["kernel"], tuning["call_site"]["file"]) == ("total", path)
