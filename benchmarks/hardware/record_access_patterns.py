"""Records the counters of `access_patterns` on the GPU of this machine: needs nvcc, ncu and the driver's permission.

python benchmarks/hardware/record_access_patterns.py OUTPUT.json
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from access_patterns import patterns
from recording import origin, printed_by

METRICS = {
    "global.load.requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global.load.sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global.store.requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global.store.sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared.load.wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared.store.wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared.load.bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared.store.bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "instructions.sass": "smsp__inst_executed.sum",
}


def _profile(program: Path, data: Path) -> list[dict[str, int]]:
    text = printed_by(
        "ncu", "--csv", "--page", "raw", "--clock-control", "none", "--metrics", ",".join(METRICS.values()),
        str(program), str(data),
    )  # fmt: skip
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    rows = list(csv.DictReader(lines[start:]))[1:]
    return [{ours: int(float(row[theirs].replace(",", ""))) for ours, theirs in METRICS.items()} for row in rows]


def main(output: Path) -> None:
    """Builds, profiles, writes."""
    wanted = patterns()
    with tempfile.TemporaryDirectory() as folder:
        program, data = Path(folder, "access_patterns"), Path(folder, "patterns.bin")
        data.write_bytes(b"".join(pattern.packed() for pattern in wanted))
        printed_by("nvcc", "-arch=sm_90", "-std=c++17", "-o", str(program), str(HERE / "access_patterns.cu"))
        measured = _profile(program, data)
    assert len(measured) == len(wanted), f"{len(measured)} launches were profiled, not {len(wanted)}"
    record = {
        **origin(),
        "compiler": printed_by("nvcc", "--version").strip().splitlines()[-1],
        "profiler": printed_by("ncu", "--version").strip().splitlines()[-1],
        "metrics": METRICS,
        "patterns": [p.as_json() | {"measured": m} for p, m in zip(wanted, measured, strict=True)],
    }
    text = json.dumps(record, separators=(",", ":"))
    output.write_text(text.replace('{"name"', '\n{"name"') + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
