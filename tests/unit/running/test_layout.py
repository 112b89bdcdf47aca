from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.running.layout import to_logical_order, to_memory_order


@given(data=st.data(), item_bytes=st.sampled_from([1, 2, 4, 8]))
def test_both_directions_agree_with_numpy(data: st.DataObject, item_bytes: int) -> None:
    sizes = data.draw(st.lists(st.integers(0, 4), max_size=5))
    order = data.draw(st.permutations(range(len(sizes))))
    item = np.arange(int(np.prod(sizes)), dtype=f"<u{item_bytes}").reshape(sizes)
    memory = np.ascontiguousarray(item.transpose(order)).tobytes()

    assert (
        to_memory_order(
            item.tobytes(), sizes=sizes, dim_order=order, item_bytes=item_bytes
        )
        == memory
    )
    assert (
        to_logical_order(memory, sizes=sizes, dim_order=order, item_bytes=item_bytes)
        == item.tobytes()
    )


@pytest.mark.parametrize("sizes", [(1, 3, 200, 200), (1, 120_000, 1, 1)])
def test_images_take_little_time(sizes: tuple[int, ...]) -> None:
    item = np.arange(120_000, dtype="<f4").reshape(sizes)
    start = time.process_time()
    to_memory_order(item.tobytes(), sizes=sizes, dim_order=(0, 2, 3, 1), item_bytes=4)
    assert time.process_time() - start < 0.3
