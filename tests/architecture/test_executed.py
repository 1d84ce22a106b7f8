"""What the page for operators of Pulsar calls executed by nothing is what no running program reaches."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from tests.architecture.executed import reached, trees, unused_names, within
from tests.architecture.tidy import ROOT

BUNDLES: Final = "controlplane.core.bundles"
ROOMS: Final = (
    "leading",
    "load",
    "ownership_channel",
    "placement",
    "settings",
    "shedding",
    "splitting",
)
RING: Final = "controlplane.core.slots.ring"
SHOWN_ONLY: Final = (
    f"{BUNDLES}.profiles",
    "controlplane.bootstrap.bundle_rules",
    "controlplane.bundle_rules",
    "controlplane.cli.profiles",
    "controlplane.inspection.profiles",
    "controlplane.testing",
)
"""What composes and shows rules, or checks those of users; a program that imports it executes none."""
NOT_RULES: Final = {"settings.knob_texts"}
"""Modules that only those use."""
PACKAGES: Final = {BUNDLES, *(f"{BUNDLES}.{room}" for room in ROOMS)}
PHRASE: Final = "in the core; executed by nothing"


class Idle(NamedTuple):
    """What a row of the page is about.

    Attributes:
        modules: rooms, or modules, of ``controlplane/core/bundles`` that no running program reaches.
        entries: what no code of the product uses: there the program that is to execute them begins.
    """

    modules: frozenset[str]
    entries: frozenset[str]


ROWS: Final[Mapping[str, Idle]] = {
    "when a broker reports, the leader's averages, the busiest bundles": Idle(
        frozenset(
            {
                "load.leader_fold",
                "load.load_order",
                "load.measured_node",
                "load.report_rule",
                "load.smoothed_node",
                "load.stored_load",
                "load.top_bundles",
            }
        ),
        frozenset(
            {
                "load.leader_fold.bundles_to_store",
                "load.leader_fold.fold",
                "load.measured_node.measured",
                "load.measured_node.reported",
                "load.report_rule.need_report",
                "load.report_rule.need_smoothed_report",
                "load.report_rule.needed",
                "load.report_rule.withdrawal_due",
                "load.smoothed_node.smoothed",
                "load.top_bundles.top_bundles",
            }
        ),
    ),
    "placement, with filters, policies and affinities": Idle(
        frozenset({"placement"}),
        frozenset(
            {
                "placement.affinity.remember",
                "placement.fixed_owner.fixed_owner",
                "placement.assignment.assign",
                "placement.unload_scope.namespaces_to_unload",
            }
        ),
    ),
    "the other shedders, and the checks before an unload": Idle(
        frozenset(
            {
                "placement.shed_checks",
                "placement.transfer_checks",
                "shedding.avg_shedder",
                "shedding.avg_shedder_plan",
                "shedding.overload",
                "shedding.plausible_loads",
                "shedding.recent",
                "shedding.transfer",
                "shedding.transfer_pair",
                "shedding.transfer_spread",
                "shedding.transfer_view",
                "shedding.uniform",
            }
        ),
        frozenset({"placement.transfer_checks.PlacementChecks"}),
    ),
    "split execution, the extensible manager's split task": Idle(
        frozenset(
            {
                "splitting.execution",
                "splitting.leader_task",
                "splitting.named_algorithms",
                "splitting.owner_task",
            }
        ),
        frozenset(
            {
                "splitting.execution.forgets_load",
                "splitting.execution.plan_split",
                "splitting.execution.without_split_bundles",
                "splitting.leader_task.bundles_to_split",
                "splitting.named_algorithms.configured",
                "splitting.owner_task.find_owner_splits",
            }
        ),
    ),
    "the ownership channel's own table: nodes that write and read it, owner look-up, clean-up, monitor": Idle(
        frozenset(
            {
                "ownership_channel.cleanup",
                "ownership_channel.flows",
                "ownership_channel.lookup",
                "ownership_channel.lost_nodes",
                "ownership_channel.monitor",
                "ownership_channel.requests",
                "ownership_channel.settings",
                "ownership_channel.shutdown",
                "ownership_channel.split_steps",
                "ownership_channel.table",
            }
        ),
        frozenset(
            {
                "ownership_channel.cleanup.plan_clean_up",
                "ownership_channel.flows.Participant",
                "ownership_channel.flows.at_start",
                "ownership_channel.flows.on_record",
                "ownership_channel.lookup.answer_after_record",
                "ownership_channel.lookup.answer_at_deadline",
                "ownership_channel.lookup.look_up",
                "ownership_channel.lost_nodes.due",
                "ownership_channel.lost_nodes.health_check_delay_ms",
                "ownership_channel.lost_nodes.metadata_state",
                "ownership_channel.lost_nodes.on_node_created",
                "ownership_channel.lost_nodes.on_node_deleted",
                "ownership_channel.monitor.find_stuck",
                "ownership_channel.requests.assign",
                "ownership_channel.requests.split",
                "ownership_channel.shutdown.ShutdownStep",
                "ownership_channel.split_steps.retry_delay_ms",
                "ownership_channel.split_steps.split_steps",
                "ownership_channel.table.compacted",
            }
        ),
    ),
    "the tasks of the leader, with their gates and periods": Idle(
        frozenset({"leading", "settings.manager_settings"}),
        frozenset(
            {
                "leading.manager_tasks.due",
                "leading.manager_tasks.due_tasks",
                "leading.unloading.after_unloads",
                "leading.unloading.plan_transfers",
                "leading.unloading.plan_unloads",
            }
        ),
    ),
}
FOR_CALLERS: Final[Mapping[str, str]] = {
    "load.resource_usage.greatest_usage": "recorded answers are compared with it; no rule of these versions reads it",
    "ranges.range_of_topic": "a reader of the routing table searches its bundles by the hash of the key",
    "shedding.contract.bundles_by_node": "tests and checks of rules read choices by node",
    "member_rings.become": "for simulations and tests of users, as docs/how-to/come-from-hivemq.md says",
    "member_rings.begin_departure": "likewise",
    "member_rings.finish_departure": "likewise",
}
"""Unused names of modules that run, and why they stay."""


def test_the_page_names_what_is_executed_by_nothing() -> None:
    """An operator who reads that a rule runs, or that it does not, can rely on it."""
    page = (ROOT / "docs" / "how-to" / "come-from-pulsar.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if PHRASE in line]
    assert [row[0] for row in rows] == [*ROWS]


def test_no_running_program_reaches_the_rules_that_the_page_names() -> None:
    """And every other module is reached: a rule that a program begins to execute leaves its row."""
    outside = [name for name in trees() if not within(name, (BUNDLES,))]
    running = reached(outside, except_for=SHOWN_ONLY)
    idle = {
        name.removeprefix(f"{BUNDLES}.")
        for name in trees()
        if within(name, (BUNDLES,)) and name not in running and not within(name, SHOWN_ONLY) and name not in PACKAGES
    }
    listed = {module for row in ROWS.values() for module in row.modules}
    assert {name for name in idle if not within(name, tuple(listed))} == NOT_RULES
    assert {name for name in listed if not any(within(each, (name,)) for each in idle)} == set()
    assert [name for name in running if within(name, tuple(f"{BUNDLES}.{each}" for each in listed))] == []


def test_what_only_tests_use_is_listed() -> None:
    """A function that nothing calls is where a program will begin that executes a rule, or it serves nothing."""
    unused = unused_names(BUNDLES) | unused_names(RING)
    assert unused == {*FOR_CALLERS, *(entry for row in ROWS.values() for entry in row.entries)}
    for row, idle in ROWS.items():
        rooms = {module.partition(".")[0] for module in idle.modules}
        assert {entry.partition(".")[0] for entry in idle.entries} <= rooms, row
