"""Any history of commits, aborts and single records, written to a log and compared with a model."""

from hypothesis import strategies as st

from controlplane.config import DECISIONS
from controlplane.ports import CommitOutcome
from tests.contracts.log_contract import DECISIONS_0, decision, opened
from tests.helpers.log_worlds import LogWorld, read_to_end, send_all

History = list[tuple[str, int]]

histories: st.SearchStrategy[History] = st.lists(
    st.tuples(st.sampled_from(["commit", "abort", "single"]), st.integers(min_value=1, max_value=4)), max_size=8
)
"""What is written, in order: how, and how many records."""


def check_history(world: LogWorld, history: History, skipped: int) -> None:
    """Any mixture of committed, aborted and single records reads as the model says, from any position.

    Args:
        world: a log that may hold records already.
        history: what to write.
        skipped: begin to read so many offsets after the former end, at most at the new one.
    """
    reader = world.open_reader()
    start = offset = reader.end_offsets(DECISIONS)[DECISIONS_0]
    expected: list[tuple[int, bytes | None]] = []
    writer = opened(world)
    for number, (step, count) in enumerate(history):
        records = [decision(b"%d.%d" % (number, i)) for i in range(count)]
        if step == "single":
            send_all(world.open_events(), records)
        elif step == "abort":
            world.abort_transaction(records)
            writer = opened(world)
        else:
            assert writer.commit(records) is CommitOutcome.COMMITTED
        if step != "abort":
            expected += [(offset + i, record.value) for i, record in enumerate(records)]
        offset += count + (step != "single")
    position = min(start + skipped, offset)
    world.settle()
    reader.assign({DECISIONS_0: position})
    seen = [(record.offset, record.value) for record in read_to_end(reader, [DECISIONS_0])]
    assert seen == [pair for pair in expected if pair[0] >= position]
    assert reader.end_offsets(DECISIONS) == {DECISIONS_0: offset}
    reader.close()
