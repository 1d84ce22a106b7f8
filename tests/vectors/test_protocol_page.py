"""The page for readers names what the code does: rules, events, and fields that digests leave out."""

import re
import typing
from pathlib import Path

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import Event
from controlplane.core.routing.rows import ROW_KINDS
from controlplane.core.slots.table import Slot
from controlplane.core.values import canonical as plain
from tests.helpers.log_values import records_within
from tests.vectors import rewrite

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "protocol.md").read_text("utf-8")


def test_vectors_name_rules_of_the_page() -> None:
    """Who looks up why a vector expects something finds it."""
    rules = set(re.findall(r"^- \*\*([A-Z]\d+)\*\*", PAGE, re.MULTILINE))
    named = {rule for name in rewrite.MAKERS for case in rewrite.read(name) for rule in case.get("rules", ())}
    assert named <= rules
    assert {rule for rule in rules if rule[0] in "TRL"} - named <= {"R14", "R16", "T1", "T2", "T6", "T9", "T11", "L8"}


def test_keys_of_every_kind_of_rows_are_listed() -> None:
    """T4: a reader that does not know a kind passes it by."""
    listed = dict(re.findall(r"^\| `main/(\w+)/[^`]+` \| (\w+) \|$", PAGE, re.MULTILINE))
    missing = {f"main/{kind.name}/<id>" for kind in ROW_KINDS if listed.get(kind.name) != kind.record.__name__}
    assert missing == set(), "add these keys to the table below T4 in docs/reference/protocol.md"


def test_records_that_name_their_type_are_listed() -> None:
    """C3: a reader that leaves one member out, or adds one, computes another digest."""
    texts = [case["canonical"] for case in rewrite.read("decision_digests")]
    tagged = {name for text in texts for name in re.findall(r'"type":"(\w+)"', text)}
    known = {kind.__name__ for kind in (*typing.get_args(Event), Slot, Bundle, Namespace)}
    assert known - tagged == set(), "add these to tests/golden/samples/ and run python -m tests.vectors.rewrite"
    assert tagged - known == set(), (
        "these carry a type within a decision: name them in C3 of docs/reference/protocol.md"
    )
    assert "Every event, and every Slot, Bundle and Namespace" in PAGE


def test_later_fields_are_listed() -> None:
    """C4: the fields that canonical JSON leaves out while they have their default."""
    later = {f"`{kind.__name__}.{name}`" for kind in records_within(Decision) for name in plain.later_defaults(kind)}
    listed = re.search(r"- \*\*C4\*\*.*?(?=\n- )", PAGE, re.DOTALL)
    assert listed is not None
    assert later == set(re.findall(r"`[A-Z]\w+\.\w+`", listed.group()))


def test_defaults_of_later_numbers_are_listed() -> None:
    """C4: with another one a reader would leave another value out, and compute another digest."""
    defaults = {
        f"{kind.__name__}.{name}": default
        for kind in records_within(Decision)
        for name, default in plain.later_defaults(kind).items()
        if isinstance(default, int) and default > 1
    }
    listed = re.search(r"- while they are ([\d, and]+): ((?:`[\w.]+`(?:,\s+| and )?)+)", PAGE)
    assert listed is not None
    numbers = [int(each.replace(",", "")) for each in re.split(r", | and ", listed[1])]
    assert dict(zip(re.findall(r"`([\w.]+)`", listed[2]), numbers, strict=True)) == defaults
