"""The publish-subscribe example's files: nothing that a stale owner writes counts, and nothing counts twice."""

import os
import threading
import zlib
from pathlib import Path

import pytest

from controlplane.node import Bundle
from examples.pubsub.open_topics import OpenTopics
from examples.pubsub.topic_file import Refused, TopicFile, TopicMessage, is_in, namespace_of

TOPIC = "persistent://shop/orders/t1"


def message(sequence: int, key: str = "k", producer: str = "p") -> TopicMessage:
    """A message whose text is its number."""
    return TopicMessage(producer, sequence, key, str(sequence))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that does not exist yet."""
    return tmp_path / "topic"


def numbers(file: TopicFile) -> list[int]:
    """The numbers of all messages."""
    return [each.sequence for each in file.read(0, 1_000)]


def test_messages_have_their_offsets_in_order(path: Path) -> None:
    """Also for a process that opens the file later."""
    file = TopicFile(path)
    assert [file.append((1, 5), message(number)) for number in (1, 2, 3)] == [0, 1, 2]
    assert file.read(1, 1) == [message(2)]
    assert TopicFile(path).read(0, 10) == [message(1), message(2), message(3)]


def test_a_message_that_is_sent_again_is_there_once(path: Path) -> None:
    """With the offset that it has, also at the next owner, who reads it from the file."""
    first = TopicFile(path)
    first.append((1, 5), message(1))
    first.append((1, 5), message(1, producer="other"))
    assert first.append((1, 5), message(1)) == 0
    second = TopicFile(path)
    second.take_over((1, 6))
    assert second.append((1, 6), message(1)) == 0
    assert second.append((1, 6), message(2)) == 2
    with pytest.raises(ValueError, match="sends 1 after 2"):
        second.append((1, 6), message(1))


def test_a_stale_owner_adds_nothing(path: Path) -> None:
    """Neither what it writes before it looks, nor what it is asked for later."""
    stale = TopicFile(path)
    stale.take_over((1, 5))
    stale.append((1, 5), message(1))
    new = TopicFile(path)
    new.take_over((1, 6))
    with pytest.raises(Refused, match="taken over"):
        stale.append((1, 5), message(2))
    with pytest.raises(Refused):
        stale.append((1, 5), message(2))
    with pytest.raises(Refused):
        TopicFile(path).take_over((1, 5))
    assert new.append((1, 6), message(2)) == 1
    assert numbers(new) == numbers(TopicFile(path)) == [1, 2]


def test_an_owner_under_a_later_term_goes_on(path: Path) -> None:
    """After a change of the leader, the same owner has a greater token; an earlier request of its own is refused."""
    file = TopicFile(path)
    file.append((1, 5), message(1))
    assert file.append((2, 5), message(2)) == 1
    with pytest.raises(Refused):
        file.append((1, 5), message(3))


def test_a_part_of_a_line_does_not_count(path: Path) -> None:
    """A broker that died while it wrote leaves one behind; the next owner's first record is not lost by it."""
    TopicFile(path).append((1, 5), message(1))
    with path.open("ab") as torn:
        torn.write(b'{"token": [1, 5], "mess')
    file = TopicFile(path)
    file.take_over((1, 6))
    with pytest.raises(Refused):
        TopicFile(path).append((1, 5), message(2))
    assert file.append((1, 6), message(2)) == 1


def test_a_record_that_a_full_disk_cut_off_takes_no_later_one_with_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not acknowledged, and counts for nothing; what is sent after it does."""
    file, write = TopicFile(path), os.write
    file.append((1, 5), message(1))
    monkeypatch.setattr(os, "write", lambda descriptor, record: write(descriptor, record[:9]))
    with pytest.raises(OSError, match="9 of"):
        file.append((1, 5), message(2))
    monkeypatch.undo()
    assert file.append((1, 5), message(2)) == 1
    assert (numbers(file), numbers(TopicFile(path))) == ([1, 2], [1, 2])


def test_closing_waits_for_a_write_and_refuses_later_ones(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a number of a file that was closed might be that of another file by then."""
    file, writes, may_go_on = TopicFile(path), threading.Event(), threading.Event()

    def wait_with(_: int) -> None:
        writes.set()
        assert may_go_on.wait(10)

    monkeypatch.setattr(os, "fsync", wait_with)
    offsets: list[int] = []
    writer = threading.Thread(target=lambda: offsets.append(file.append((1, 5), message(1))))
    writer.start()
    assert writes.wait(10)
    closer = threading.Thread(target=file.close)
    closer.start()
    closer.join(0.05)
    assert closer.is_alive()
    may_go_on.set()
    writer.join()
    closer.join()
    assert offsets == [0]
    for request in (
        lambda: file.append((1, 5), message(2)),
        lambda: file.read(0, 1),
        lambda: file.take_over((1, 5)),
    ):
        with pytest.raises(Refused, match="closed"):
            request()
    file.close()


def test_topics_belong_to_bundles_by_their_hashes(tmp_path: Path) -> None:
    """Whatever else is in the directory: files of other namespaces, and outputs."""
    middle = zlib.crc32(TOPIC.encode())
    lower, upper = Bundle("shop/orders", 0, middle, "b1"), Bundle("shop/orders", middle, 0xFFFFFFFF, "b1")
    topics = OpenTopics(tmp_path / "topics")
    for topic in (TOPIC, TOPIC.replace("orders", "bills")):
        topics.file_of(topic)
    (tmp_path / "topics" / "b1.log").touch()
    assert topics.stored_in(upper) == topics.open_in(upper) == [TOPIC]
    assert topics.stored_in(lower) == []
    topics.close(upper)
    assert topics.open_in(upper) == []
    topics.take_over(upper, (1, 5))  # type: ignore[arg-type]  # a token of plain numbers
    topics.take_over(upper, (1, 4))  # type: ignore[arg-type]  # refused by the file, which is no error here
    assert topics.open_in(upper) == [TOPIC]
    assert is_in(Bundle("shop/orders", 0, 0xFFFFFFFF, None), TOPIC)


@pytest.mark.parametrize("name", ["t1", "persistent://shop/t1", "persistent://a/b/c/d", "persistent:///b/c"])
def test_topics_have_full_names(name: str) -> None:
    """Anything else is refused before it is looked for."""
    with pytest.raises(ValueError, match="write a full name"):
        namespace_of(name)
