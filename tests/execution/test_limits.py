from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from triptych.chips import GpuChip, load
from triptych.core.errors import LaunchError
from triptych.core.plan import LaunchShape
from triptych.execution.limits import check_launch, resident_blocks_per_sm


@dataclass(frozen=True, slots=True)
class Kernel:
    name: str = "k"
    required_block: tuple[int, int, int] | None = None
    max_threads: int | None = None
    static_shared_bytes: int = 0
    required_cluster: tuple[int, int, int] | None = None
    needs_cluster: bool = False


def chip(name: str) -> GpuChip:
    found = load(name)
    assert isinstance(found, GpuChip)
    return found


H100 = chip("h100")
FITS = LaunchShape((1, 1, 1), (1024, 1, 1))


def refused(launch: LaunchShape, kernel: Kernel | None = None, on: GpuChip = H100, target: str | None = None) -> str:
    with pytest.raises(LaunchError) as caught:
        check_launch(launch, kernel or Kernel(), on, target)
    return caught.value.message


@pytest.mark.parametrize(
    "launch",
    [
        FITS,
        replace(FITS, grid=(2**31 - 1, 65535, 65535)),
        replace(FITS, block=(4, 4, 64)),
        replace(FITS, shared_bytes=H100.shared_bytes_per_block_max),
        replace(FITS, cluster=(2, 2, 2), grid=(4, 2, 2)),
        replace(FITS, cooperative=True, grid=(2 * H100.sm_count, 1, 1)),
    ],
)
def test_launches_at_the_limits_fit(launch: LaunchShape) -> None:
    check_launch(launch, Kernel(), H100)


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        (replace(FITS, block=(1025, 1, 1)), r"block \(1025, 1, 1\) has 1025 threads; h100 runs at most 1024"),
        (replace(FITS, block=(33, 32, 1)), r"has 1056 threads; h100 runs at most 1024"),
        (replace(FITS, block=(1, 1, 65)), "z must lie between 1 and 64"),
        (replace(FITS, block=(0, 1, 1)), "x must lie between 1 and 1024"),
        (replace(FITS, grid=(1, 65536, 1)), "y must lie between 1 and 65535"),
        (replace(FITS, grid=(2**31, 1, 1)), "x must lie between 1 and 2147483647"),
        (replace(FITS, grid=(1, 1, 0)), "z must lie between 1 and 65535"),
        (replace(FITS, shared_bytes=-1), "-1 bytes of dynamic shared memory"),
        (replace(FITS, shared_bytes=300_000), r"300000 bytes .*; a block on h100 has at most 232448"),
        (replace(FITS, cluster=(16, 2, 1), grid=(16, 2, 1)), "has 32 blocks; h100 has at most 16"),
        (replace(FITS, cluster=(2, 1, 1), grid=(3, 1, 1)), "is no multiple of the cluster"),
        (replace(FITS, cooperative=True, grid=(300, 1, 1)), "has 300 blocks; h100 holds at most 264"),
    ],
)
def test_launches_beyond_a_limit_are_refused(launch: LaunchShape, message: str) -> None:
    assert refused(launch).startswith("kernel 'k': ")
    with pytest.raises(LaunchError, match=message):
        check_launch(launch, Kernel(), H100)


def test_what_the_kernel_was_compiled_for() -> None:
    assert "compiled for (128, 1, 1) (.reqntid)" in refused(FITS, Kernel(required_block=(128, 1, 1)))
    assert "at most 512 (__launch_bounds__, .maxntid)" in refused(FITS, Kernel(max_threads=512))
    check_launch(replace(FITS, block=(128, 1, 1)), Kernel(required_block=(128, 1, 1), max_threads=128), H100)


def test_the_cluster_that_the_kernel_was_compiled_for() -> None:
    pairs, two = Kernel(required_cluster=(2, 1, 1)), replace(FITS, grid=(2, 1, 1))
    check_launch(two, pairs, H100)
    check_launch(replace(two, cluster=(2, 1, 1)), pairs, H100)
    assert "cluster (1, 2, 1), but the kernel was compiled for (2, 1, 1) (__cluster_dims__, .reqnctapercluster)" in (
        refused(replace(two, cluster=(1, 2, 1), grid=(2, 2, 1)), pairs)
    )
    assert "grid (1, 1, 1) is no multiple of the cluster (2, 1, 1)" in refused(FITS, pairs)
    assert "cluster (2, 1, 1): t4 has no clusters" in refused(two, pairs, chip("t4"))
    assert "was compiled for sm_80, which has no clusters" in refused(two, pairs, target="sm_80")
    check_launch(two, pairs, H100, "sm_90a")
    check_launch(FITS, Kernel(), H100, "sm_80")
    needs = Kernel(needs_cluster=True)
    assert "must be launched with a cluster (.explicitcluster)" in refused(two, needs)
    check_launch(replace(two, cluster=(2, 1, 1)), needs, H100)


@pytest.mark.parametrize(("name", "most"), [("h100", 16), ("h200", 16), ("b200", 16), ("rtx5090", 8)])
def test_the_largest_cluster(name: str, most: int) -> None:
    check_launch(replace(FITS, cluster=(most, 1, 1), grid=(most, 1, 1)), Kernel(), chip(name))
    larger = replace(FITS, cluster=(2 * most, 1, 1), grid=(2 * most, 1, 1))
    assert f"has {2 * most} blocks; {name} has at most {most}" in refused(larger, on=chip(name))


def test_static_shared_memory_counts() -> None:
    launch = replace(FITS, shared_bytes=H100.shared_bytes_per_block_max - 1000)
    check_launch(launch, Kernel(static_shared_bytes=1000), H100)
    assert "(1001 static, 231448 dynamic)" in refused(launch, Kernel(static_shared_bytes=1001))


def test_limits_are_the_chips_own() -> None:
    launch = replace(FITS, shared_bytes=200_000)
    check_launch(launch, Kernel(), H100)
    assert "a block on t4 has at most 65536" in refused(launch, on=chip("t4"))
    assert "t4 has no clusters" in refused(replace(FITS, cluster=(2, 1, 1), grid=(2, 1, 1)), on=chip("t4"))


def test_resident_blocks() -> None:
    assert resident_blocks_per_sm(replace(FITS, block=(33, 1, 1)), Kernel(), H100) == 32
    assert resident_blocks_per_sm(FITS, Kernel(), H100) == 2
    assert resident_blocks_per_sm(replace(FITS, block=(32, 1, 1)), Kernel(static_shared_bytes=100_000), H100) == 2
