"""The indexes of the documentation name every page, and say of each decision record what the record says."""

import pytest

from tests.architecture import documentation_index as indexes


def test_every_page_is_in_the_index() -> None:
    """Each once, with a sentence: a page that is not there is not found by readers."""
    index = (indexes.DOCS / "README.md").read_text(encoding="utf-8")
    described = [path for path in indexes.described_pages(index) if not path.startswith("../")]
    assert sorted(described) == sorted([*indexes.pages(indexes.DOCS), "decisions/README.md"])


def test_the_index_of_decisions_and_the_records_agree() -> None:
    """On numbers, titles and status, in the order of the numbers."""
    index = (indexes.RECORDS / "README.md").read_text(encoding="utf-8")
    files = sorted(path for path in indexes.RECORDS.glob("[0-9]*.md") if path.name != "0000-template.md")
    records = [indexes.record_of(path.name, path.read_text(encoding="utf-8")) for path in files]
    assert indexes.indexed_records(index) == records
    assert [record.file[:4] for record in records] == [record.number for record in records]
    assert len({record.number for record in records}) == len(records)


def test_superseding_records_are_there_and_later() -> None:
    """The status of an overtaken record leads to one that came after it."""
    index = (indexes.RECORDS / "README.md").read_text(encoding="utf-8")
    records = indexes.indexed_records(index)
    numbers = {record.number for record in records}
    for record in records:
        assert indexes.STATUSES.fullmatch(record.status), record
        if record.status != "accepted":
            later = record.status.split()[-1]
            assert later in numbers, record
            assert later > record.number, record


def test_what_an_index_lacks_is_found() -> None:
    """Each way of reading, on what it is for and on its neighbours."""
    entries = "- [a](how-to/a.md): How to do a.\n- [b](b.md)\n- [c](c.md): \n[d](d.md): Not a line of the list."
    assert indexes.described_pages(entries) == ["how-to/a.md"]
    row = "| 0001 | [One](0001-one.md) | superseded by [0002](0002-two.md) |"
    told = indexes.Record("0001", "One", "0001-one.md", "superseded by 0002")
    assert indexes.indexed_records(row) == [told]
    text = "# 0001. One\n\n**Status.** {status}, because.\n\n**Context.** ..."
    assert indexes.record_of("0001-one.md", text.replace("{status}", "Superseded by [0002](0002-two.md)")) == told
    assert indexes.record_of("0001-one.md", text.replace("{status}", "Accepted")).status == "accepted"
    with pytest.raises(ValueError, match=r"0001-one\.md does not begin"):
        indexes.record_of("0001-one.md", "# 0001. One\n\n**Context.** ...")
