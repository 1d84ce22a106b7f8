"""SOFARegistry's slot table decisions, exactly: which node leads and follows each slot, tick for tick.

The behaviour is that of SOFARegistry 6.3.0 to 6.6.3, which decide alike. `docs/explanation/sofa.md` describes where it
is surprising and what the default policy does instead.

java_collections  java.util.HashMap and HashSet, as far as their iteration order matters
table             the table and its epochs
refusals          the exceptions of its classes, after which a tick changes nothing
builder           a table under construction, with the view by node that the balancer iterates
balance_numbers   the balance policy's thresholds
assigner          gives slots without leader or followers to nodes (DefaultSlotAssigner)
balancer          moves slots between nodes in five stages (DefaultSlotBalancer)
leader_only       moves slots that have no followers (LeaderOnlyBalancer)
arranger          one tick: which of these runs, and what is published (ScheduledSlotArranger)
force_refresh     a new table on an operator's request (BalanceTask)

Whether all slots are in sync, for which balancing waits (SlotTableMonitor), is decided in
`controlplane.core.slots.sync`, because other policies use it too.
"""
