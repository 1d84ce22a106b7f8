"""Bugs in the rules for the ownership of bundles, the tasks of leaders, and the unloads after a shedder."""

from typing import Final

from tests.conformance.mutants.mutant import Mutant

_CONFLICT: Final = "bundles/ownership_channel/conflict.py"
_RECORD: Final = "bundles/ownership_channel/record.py"
_STATES: Final = "bundles/ownership_channel/states.py"
_TABLE: Final = "bundles/ownership_channel/table.py"
_FLOWS: Final = "bundles/ownership_channel/flows.py"
_DIVISION: Final = "bundles/ownership_channel/split_steps.py"
_LOOKUP: Final = "bundles/ownership_channel/lookup.py"
_LOST_NODES: Final = "bundles/ownership_channel/lost_nodes.py"
_CLEANUP: Final = "bundles/ownership_channel/cleanup.py"
_MONITOR: Final = "bundles/ownership_channel/monitor.py"
_LEADER_TASKS: Final = "bundles/leading/manager_tasks.py"
_RECENT: Final = "bundles/shedding/recent.py"
_UNLOADING: Final = "bundles/leading/unloading.py"

_TABLE_TESTS: Final = ("unit/core/bundles/ownership_channel/test_table.py",)
_FLOWS_TESTS: Final = ("unit/core/bundles/ownership_channel/test_flows.py",)
_LOOKUP_TESTS: Final = ("unit/core/bundles/ownership_channel/test_lookup.py",)
_LOST_NODES_TESTS: Final = ("unit/core/bundles/ownership_channel/test_lost_nodes.py",)
_MONITOR_TESTS: Final = ("unit/core/bundles/ownership_channel/test_monitor.py",)
_LEADER_TASKS_TESTS: Final = ("unit/core/bundles/test_leader_tasks.py",)
_UNLOADING_TESTS: Final = ("unit/core/bundles/test_unloading.py",)

MUTANTS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "a record with the present version is taken",
        _CONFLICT,
        "if present.version >= read.version:",
        "if present.version > read.version:",
        ("conflict",),
        _TABLE_TESTS,
    ),
    Mutant(
        "a record with the next version is taken without a check",
        _CONFLICT,
        "if present.version < read.version - 1:",
        "if present.version < read.version:",
        ("conflict",),
        _TABLE_TESTS,
    ),
    Mutant(
        "the metadata store takes a record behind a gap of versions",
        _CONFLICT,
        "return Verdict.GAP if storage is Storage.SYSTEM_TOPIC else Verdict.VERSION_GAP",
        "return Verdict.GAP",
        ("conflict",),
        _TABLE_TESTS,
    ),
    Mutant(
        "any version follows the greatest one",
        _CONFLICT,
        "if (present.version, read.version) == (GREATEST_VERSION, LEAST_VERSION):",
        "if present.version == GREATEST_VERSION:",
        ("conflict",),
        _TABLE_TESTS,
    ),
    Mutant(
        "the metadata store checks the state of a first record",
        _CONFLICT,
        "return Verdict.FIRST if read.version == FIRST_VERSION else Verdict.NOT_FIRST_VERSION",
        "return None if read.version == FIRST_VERSION else Verdict.NOT_FIRST_VERSION",
        ("conflict",),
        _TABLE_TESTS,
    ),
    Mutant(
        "an owner may release a bundle to itself",
        _CONFLICT,
        "matches = present.destination == read.source and present.destination != read.destination",
        "matches = present.destination == read.source",
        ("conflict",),
        _TABLE_TESTS,
    ),
    Mutant(
        "a release may be followed by an assignment to nobody",
        _CONFLICT,
        "matches = same and not is_blank(read.destination)",
        "matches = same",
        ("conflict",),
        _TABLE_TESTS,
    ),
    Mutant(
        "a free bundle may be assigned with a source",
        _CONFLICT,
        "matches = is_blank(read.source) and not is_blank(read.destination)",
        "matches = not is_blank(read.destination)",
        ("conflict",),
        _TABLE_TESTS,
    ),
    Mutant(
        "an owned bundle without an owner is compared like any other",
        _CONFLICT,
        "    if present.destination is None:\n        return Verdict.NO_OWNER\n",
        "",
        ("conflict",),
        _TABLE_TESTS,
    ),
    Mutant(
        "a name of white space counts as a node",
        _RECORD,
        "all(each.isspace() and each not in _NOT_BLANK_IN_JAVA for each in node_id)",
        "not node_id",
        ("conflict",),
        _TABLE_TESTS,
    ),
    Mutant(
        "versions grow beyond 64 bits",
        _RECORD,
        "return LEAST_VERSION if record.version == GREATEST_VERSION else record.version + 1",
        "return record.version + 1",
        ("conflict",),
        _TABLE_TESTS,
    ),
    Mutant(
        "a free bundle's record cannot be followed by its initial state",
        _STATES,
        "OwnershipState.FREE: frozenset({OwnershipState.ASSIGNING, OwnershipState.INIT}),",
        "OwnershipState.FREE: frozenset({OwnershipState.ASSIGNING}),",
        ("transitions",),
        _TABLE_TESTS,
    ),
    Mutant(
        "compaction keeps the places of the first records",
        _TABLE,
        "records[each.written.bundle_id] = records.pop(each.written.bundle_id)",
        "pass",
        tests=_TABLE_TESTS,
    ),
    Mutant(
        "a former owner that was taken for dead keeps its clients when unloads have one phase",
        _FLOWS,
        "return record.is_forced or (record.is_transfer and self.settings.unloads_in_phases)",
        "return record.is_transfer and self.settings.unloads_in_phases",
        tests=_FLOWS_TESTS,
    ),
    Mutant(
        "a transfer disconnects its clients at once",
        _FLOWS,
        "state, disconnects = OwnershipState.ASSIGNING, not self.settings.unloads_in_phases",
        "state, disconnects = OwnershipState.ASSIGNING, True",
        tests=_FLOWS_TESTS,
    ),
    Mutant(
        "a freed bundle is deleted though nobody forced it",
        _FLOWS,
        "case OwnershipState.FREE if record.is_forced:",
        "case OwnershipState.FREE:",
        tests=_FLOWS_TESTS,
    ),
    Mutant(
        "a node that shuts down ignores forced records",
        _FLOWS,
        "if record is None or (self.is_disabled and not record.is_forced):",
        "if record is None or self.is_disabled:",
        tests=_FLOWS_TESTS,
    ),
    Mutant(
        "a part of a divided bundle loses the record that it has",
        _DIVISION,
        "if child_id not in records)",
        ")",
        tests=_FLOWS_TESTS,
    ),
    Mutant(
        "a division is tried eight times",
        _DIVISION,
        "return RETRY_DELAY_MS if attempts < MAX_ATTEMPTS else None",
        "return RETRY_DELAY_MS if attempts <= MAX_ATTEMPTS else None",
        tests=_FLOWS_TESTS,
    ),
    Mutant(
        "the owner of a bundle that is split is its destination",
        _LOOKUP,
        "node_id = record.source if state is OwnershipState.SPLITTING else record.destination",
        "node_id = record.destination",
        tests=_LOOKUP_TESTS,
    ),
    Mutant(
        "an unregistered node checks owners",
        _LOOKUP,
        "if goes_elsewhere or not asker.is_registered:",
        "if goes_elsewhere:",
        tests=_LOOKUP_TESTS,
    ),
    Mutant(
        "a bundle on its way elsewhere makes a look-up wait",
        _LOOKUP,
        "and node_id != asker.node_id",
        "and node_id is None",
        tests=_LOOKUP_TESTS,
    ),
    Mutant(
        "a refused record answers a waiting look-up with no owner",
        _LOOKUP,
        "case OwnershipState.INIT | OwnershipState.FREE if was_taken:",
        "case OwnershipState.INIT | OwnershipState.FREE:",
        tests=_LOOKUP_TESTS,
    ),
    Mutant(
        "a session counts as stable after exactly three minutes",
        _LOST_NODES,
        "age_ms > JITTER_MS",
        "age_ms >= JITTER_MS",
        tests=_LOST_NODES_TESTS,
    ),
    Mutant(
        "a health check is repeated four times",
        _LOST_NODES,
        "if retry >= _MAX_HEALTH_CHECK_RETRIES:",
        "if retry > _MAX_HEALTH_CHECK_RETRIES:",
        tests=_LOST_NODES_TESTS,
    ),
    Mutant(
        "a second notice puts a clean-up off",
        _LOST_NODES,
        "    if node_id in clean_ups.due_ms:",
        "    if not node_id:",
        tests=_LOST_NODES_TESTS,
    ),
    Mutant(
        "an overridden owner is not the source",
        _CLEANUP,
        "former_owner = former.destination if state is OwnershipState.OWNED else former.source",
        "former_owner = former.source",
        tests=_LOST_NODES_TESTS,
    ),
    Mutant(
        "an owner that gets its bundle again is its source",
        _CLEANUP,
        "source = None if former_owner == chosen else former_owner",
        "source = former_owner",
        tests=_LOST_NODES_TESTS,
    ),
    Mutant(
        "a node that shuts down releases a bundle to itself",
        _CLEANUP,
        "releases = gracefully and source is not None",
        "releases = gracefully",
        tests=_LOST_NODES_TESTS,
    ),
    Mutant(
        "a former owner's bundles are cleaned up with it",
        _CLEANUP,
        "if owns or (record.source == node_id and record.state.is_in_flight):",
        "if owns or (record.source == node_id and record.state.is_active):",
        tests=_LOST_NODES_TESTS,
    ),
    Mutant(
        "a namespace that only begins like the system's comes last",
        _CLEANUP,
        "namespace_of(bundle_id) == SYSTEM_NAMESPACE",
        "bundle_id.startswith(SYSTEM_NAMESPACE)",
        tests=_LOST_NODES_TESTS,
    ),
    Mutant(
        "a node that shuts down in health is not cleaned up",
        _CLEANUP,
        "if is_healthy and not gracefully:",
        "if is_healthy:",
        tests=_LOST_NODES_TESTS,
    ),
    Mutant(
        "a change is stuck after exactly its time",
        _MONITOR,
        "elif record.state.is_in_flight and age_ms > settings.in_flight_ms:",
        "elif record.state.is_in_flight and age_ms >= settings.in_flight_ms:",
        tests=_MONITOR_TESTS,
    ),
    Mutant(
        "a record is forgotten after exactly its time",
        _MONITOR,
        "elif not record.state.is_active and age_ms > settings",
        "elif not record.state.is_active and age_ms >= settings",
        tests=_MONITOR_TESTS,
    ),
    Mutant(
        "of two lost nodes the destination comes first",
        _MONITOR,
        "needed = (record.source, record.destination)",
        "needed = (record.destination, record.source)",
        tests=_MONITOR_TESTS,
    ),
    Mutant(
        "the table is searched while the session is jittery",
        _MONITOR,
        "return None if state is MetadataState.STABLE else",
        "return None if state is not MetadataState.UNSTABLE else",
        tests=_MONITOR_TESTS,
    ),
    Mutant(
        "a new leader sheds at the time of the old one",
        _LEADER_TASKS,
        "            began.pop(row.task.value, None)\n",
        "",
        tests=_LEADER_TASKS_TESTS,
    ),
    Mutant(
        "times that were missed are made up for",
        _LEADER_TASKS,
        "began[row.task.value] += max(0, passed) * period_ms",
        "began[row.task.value] += period_ms if passed > 0 else 0",
        tests=_LEADER_TASKS_TESTS,
    ),
    Mutant(
        "a task runs a period too early",
        _LEADER_TASKS,
        "if passed > 0 else Gate.NOT_DUE",
        "if passed >= 0 else Gate.NOT_DUE",
        tests=_LEADER_TASKS_TESTS,
    ),
    Mutant(
        "splitting needs one node more",
        _LEADER_TASKS,
        "nodes >= (settings",
        "nodes > (settings",
        tests=_LEADER_TASKS_TESTS,
    ),
    Mutant(
        "the leader looks for splits with a single node",
        _LEADER_TASKS,
        "(Gate.NO_NEWS, Gate.SPLITTING_OFF, Gate.NOT_LEADER, Gate.TOO_FEW_NODES)",
        "(Gate.NO_NEWS, Gate.SPLITTING_OFF, Gate.NOT_LEADER)",
        tests=_LEADER_TASKS_TESTS,
    ),
    Mutant(
        "a bundle's rest ends a moment early",
        _RECENT,
        "if at_ms >= limit_ms",
        "if at_ms > limit_ms",
        tests=_UNLOADING_TESTS,
    ),
    Mutant(
        "the placement of each unload begins anew",
        _UNLOADING,
        "        memory = checked[-1].check.memory\n",
        "",
        tests=_UNLOADING_TESTS,
    ),
)
