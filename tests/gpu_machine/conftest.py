from collections.abc import Iterator

import pytest

import triptych as tt


@pytest.fixture(autouse=True)
def two_workers() -> Iterator[None]:
    with tt.scope(workers=2):
        yield
