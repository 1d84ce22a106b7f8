"""How results are printed."""

import io
import json
import sys

import pytest

from controlplane.cli.common import output


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        ("", "-"),
        ([], "-"),
        ({}, "-"),
        (True, "yes"),
        (0, "0"),
        (0.25, "0.25"),
        (["a", None], "a, -"),
        ({"a": 1, "b": [2]}, "a=1, b=2"),
        ("kv/0x0", "kv/0x0"),
    ],
)
def test_cell_text(value: object, text: str) -> None:
    """Nothing, zero and no are told apart, and nested values stay on one line."""
    assert output.cell_text(value) == text  # type: ignore[arg-type]  # the parameters are plain values


def test_plain_table_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    """Columns begin at the same place in each line, so that ``cut`` and eyes find them."""
    output.print_rows([{"a_b": "x", "c": 1}, {"a_b": "longer", "c": None}], ("a_b", "c"))
    assert capsys.readouterr().out == "a b     c\nx       1\nlonger  -\n"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_drawn_table_shows_brackets_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal tables are drawn; evidence such as ``heartbeats[3]@17`` is no markup."""
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    output.print_rows([{"cause": "heartbeats[3]@17 [red]"}], ("cause",))
    assert "heartbeats[3]@17 [red]" in terminal.getvalue()
    assert "━" in terminal.getvalue()


def test_json_keeps_every_letter(capsys: pytest.CaptureFixture[str]) -> None:
    """One document, readable by programs and by people who do not write ASCII."""
    output.print_json({"name": "Knöten", "n": None})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"name": "Knöten", "n": None}
    assert "ö" in printed


def test_long_tables_say_how_much_they_leave_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Findings are cut at their end, since the first explains the others; a history is cut at its beginning."""
    rows = [{"n": number} for number in range(5)]
    for limit, first, last in (
        (
            2,
            "n\n0\n1\n... and 3 more: --limit 0 prints all\n",
            "3 more rows before these: --limit 0 prints all\nn\n3\n4\n",
        ),
        (5, "n\n0\n1\n2\n3\n4\n", "n\n0\n1\n2\n3\n4\n"),
        (0, "n\n0\n1\n2\n3\n4\n", "n\n0\n1\n2\n3\n4\n"),
    ):
        output.print_first_rows(rows, ("n",), limit)
        assert capsys.readouterr().out == first
        output.print_last_rows(rows, ("n",), limit)
        assert capsys.readouterr().out == last
