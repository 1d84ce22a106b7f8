"""The promises of rules for bundles: those of the package keep them, and a rule that breaks one is told which."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from controlplane.core.bundles.load.view import LoadView
from controlplane.core.bundles.placement.contract import Selection
from controlplane.core.bundles.profiles.chosen_rules import chosen_rules
from controlplane.core.bundles.profiles.composition import REGISTRY, compose
from controlplane.core.bundles.profiles.registry import Rule, RuleKind
from controlplane.core.bundles.profiles.values import PROFILES
from controlplane.core.bundles.settings.managers import Manager
from controlplane.core.bundles.shedding.contract import Evidence, ShedChoice, Shedding, ShedReason, UnloadOutcome
from controlplane.testing import check_placement, check_shedder, sample_views

MODULAR = [name for name in PROFILES if compose(name).manager is Manager.MODULAR]


def rules(kind: RuleKind) -> list[Rule]:
    """The built-in rules of the modular manager."""
    return [rule for rule in REGISTRY.rules if (rule.kind, rule.manager) == (kind, Manager.MODULAR)]


@pytest.mark.parametrize("profile", MODULAR)
@pytest.mark.parametrize("rule", rules(RuleKind.SHEDDER), ids=lambda rule: rule.short_name)
def test_built_in_shedders_keep_their_promises(rule: Rule, profile: str) -> None:
    """Under every profile, with its quirks."""
    made: Any = compose(profile).make(rule)
    check_shedder(made)
    chosen = 0
    for view in sample_views():
        memory = made.first_memory
        for _ in range(3):
            answer = made.shed(view, memory)
            memory, chosen = answer.memory, chosen + len(answer.choices)
    assert chosen > 0


@pytest.mark.parametrize("profile", MODULAR)
@pytest.mark.parametrize("rule", rules(RuleKind.PLACEMENT), ids=lambda rule: rule.short_name)
def test_built_in_placements_keep_their_promises(rule: Rule, profile: str) -> None:
    """Under every profile, with its quirks."""
    made: Any = compose(profile).make(rule)
    check_placement(made)


def test_chosen_rules_are_held_against_views_of_others() -> None:
    """A caller's own views; with none nothing is asked."""
    shedder = chosen_rules(compose(MODULAR[0])).shedder
    check_shedder(shedder, [])
    check_shedder(shedder, sample_views(seed=7, count=3))
    assert repr(sample_views(3)) == repr(sample_views(3)) != repr(sample_views(4))


CHOICE = ShedChoice("n0", "t/n/0x00000000_0xffffffff", ShedReason.OVERLOADED, 1.0, 1.0, (Evidence("usage", 1.0, 0.5),))
ONE_NODE = sample_views()[1:2]


@dataclass
class Scripted:
    """Sheds what it is told to."""

    choices: tuple[ShedChoice, ...] = (CHOICE,)
    changes: str = ""
    calls: int = 0
    name: str = "Scripted"
    first_memory: dict[str, int] = field(default_factory=dict)

    def shed(self, view: LoadView, memory: dict[str, int]) -> Shedding[dict[str, int]]:
        """The choices; with a mistake if one is asked for."""
        self.calls += 1
        if self.changes == "memory":
            memory["calls"] = 1 if not memory else memory["calls"] + 1
        figures = {"calls": float(self.calls)} if self.changes == "answer" else {}
        return Shedding(self.choices, {} if self.changes == "memory" else memory, figures=figures)

    def retain(self, memory: dict[str, int], active: object) -> dict[str, int]:
        """The memory."""
        if self.changes == "retain":
            memory["retained"] = 1
        return memory

    def after_unload(
        self, memory: dict[str, int], choice: ShedChoice, outcome: UnloadOutcome, now_ms: int
    ) -> dict[str, int]:
        """The memory."""
        if self.changes == "end":
            memory[choice.bundle_id] = now_ms
        self.calls += 1
        return {"calls": self.calls} if self.changes == "ends" else memory


BROKEN = {
    "node 'n9' is not in the view": Scripted((replace(CHOICE, node_id="n9"),)),
    "bundle 'b' is not in the view": Scripted((replace(CHOICE, bundle_id="b"),)),
    "no node 'n9' is in the view": Scripted((replace(CHOICE, destination="n9"),)),
    "is to move to its own node": Scripted((replace(CHOICE, destination="n0"),)),
    "has no evidence": Scripted((replace(CHOICE, evidence=()),)),
    "is chosen twice": Scripted((CHOICE, CHOICE)),
    "it changed its view or its memory": Scripted(changes="memory"),
    "equal inputs, different answers": Scripted(changes="answer"),
    "retain changed the memory": Scripted(changes="retain"),
    r"memory\['a'\] is a set; use numbers": Scripted(first_memory={"a": {1}}),  # type: ignore[dict-item]
    "after_unload changed the memory": Scripted(changes="end"),
    "equal ends of a choice, different memories": Scripted(changes="ends"),
}


@pytest.mark.parametrize("promise", BROKEN)
def test_a_shedder_that_breaks_a_promise_is_told_which(promise: str) -> None:
    """By the name of the rule."""
    check_shedder(Scripted(), ONE_NODE)
    with pytest.raises(AssertionError, match=f"Scripted: .*{promise}|Scripted: {promise}"):
        check_shedder(BROKEN[promise], ONE_NODE)


@dataclass
class Picks:
    """Selects what it is told to."""

    best: tuple[str, ...] | None
    name: str = "Picks"
    first_memory: int = 0

    def select(self, bundle: object, candidates: Sequence[str], view: object, memory: int) -> Selection[int]:
        """The nodes, or all candidates."""
        return Selection(tuple(candidates) if self.best is None else self.best, memory)

    def after_pick(self, bundle: object, node_id: str, view: object, memory: int) -> int:
        """The memory."""
        return memory

    def retain(self, memory: int, active: object) -> int:
        """The memory."""
        return memory


def test_a_placement_that_breaks_a_promise_is_told_which() -> None:
    """A stranger, nobody, somebody twice."""
    check_placement(Picks(None))
    with pytest.raises(AssertionError, match="Picks: memory is a list"):
        check_placement(Picks(None, first_memory=[]), ONE_NODE)  # type: ignore[arg-type]  # what is to be found
    for best, promise in ((("x",), "not all candidates"), ((), "0 best of 1"), (("n0", "n0"), "twice among the best")):
        with pytest.raises(AssertionError, match=promise):
            check_placement(Picks(best), ONE_NODE)


@dataclass(frozen=True, slots=True)
class WronglyTyped:
    """A rule whose answers are what it is given."""

    answer: object
    name: str = "Wrong"
    first_memory: None = None

    def shed(self, view: LoadView, memory: None) -> Any:  # noqa: ANN401 - the wrong type
        """Answer as given."""
        del view, memory
        return self.answer

    def select(self, *_: object) -> Any:  # noqa: ANN401 - the wrong type
        """Answer as given."""
        return self.answer


@pytest.mark.parametrize("answer", [None, [CHOICE], ((CHOICE,), None)])
def test_an_answer_of_another_type_is_named(answer: object) -> None:
    """Instead of an error about an attribute."""
    rule: Any = WronglyTyped(answer)
    with pytest.raises(AssertionError, match=r"^Wrong\.shed is .*, expected a Shedding$"):
        check_shedder(rule, ONE_NODE)
    with pytest.raises(AssertionError, match=r"^Wrong\.select is .*, expected a Selection$"):
        check_placement(rule, ONE_NODE)


def test_a_choice_of_another_type_is_named() -> None:
    """Such as the id of a bundle."""
    rule: Any = WronglyTyped(Shedding(("t/n/0x00000000_0xffffffff",), None))  # type: ignore[arg-type]  # on purpose
    with pytest.raises(AssertionError, match=r"^Wrong: a choice is 't/n/0x0.*, expected a ShedChoice$"):
        check_shedder(rule, ONE_NODE)
