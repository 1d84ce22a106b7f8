"""Views: questions that are asked so often that they have names, in words that both engines of ``sql`` understand."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class View:
    """A named query over tables.

    Attributes:
        name: its name in SQL.
        row: the meaning of a row, as a sentence.
        tables: the tables and views that it reads.
        columns: its columns with their meaning, in order.
        query: the statement.
    """

    name: str
    row: str
    tables: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    query: str


_INTERVAL: Final = (
    ("kind", "`slot` or `bundle`."),
    ("name", "The slot's number as text, or the bundle's id."),
)

OWNERSHIP_VIEW: Final = View(
    name="ownership",
    row="A time during which one process served a slot or bundle, or none did.",
    tables=("slot_changes", "bundle_changes"),
    columns=(
        *_INTERVAL,
        ("node_id", "The node that served it; null: none."),
        ("from_ms", "When the broker appended the decision with which it began."),
        ("until_ms", "When it appended the one with which it ended; null: it lasts."),
        ("from_seq", "The decision with which it began."),
        ("until_seq", "The one with which it ended."),
        ("epoch", "The epoch of the routing table with which it began."),
    ),
    query="""\
select kind, name, node_id, from_ms, until_ms, from_seq, until_seq, epoch
from (
  select
    kind, name, node_id, append_time_ms as from_ms, seq as from_seq, epoch, ended,
    lead(append_time_ms) over (partition by kind, name order by seq) as until_ms,
    lead(seq) over (partition by kind, name order by seq) as until_seq
  from (
    select
      'slot' as kind, cast(slot_id as string) as name, to_leader as node_id, append_time_ms, seq, epoch, false as ended
    from slot_changes
    where to_leader is distinct from from_leader or to_leader_epoch is distinct from from_leader_epoch
    union all
    select 'bundle' as kind, bundle_id as name, to_serving_node as node_id, append_time_ms, seq, epoch, ended
    from bundle_changes
    where to_serving_node is distinct from from_serving_node or to_owner_epoch is distinct from from_owner_epoch
      or from_state is null or ended
  ) as changed
) as intervals
where not ended
""",
)
UNAVAILABILITY_VIEW: Final = View(
    name="unavailability",
    row="A time during which a slot or bundle was served by no node.",
    tables=("slot_changes", "bundle_changes", "node_changes", "ownership"),
    columns=(
        *_INTERVAL,
        (
            "reason",
            "`silence`: its node was silent, until it was fenced for it; `no node`: the table names none that serves.",
        ),
        ("node_id", "The node that was silent; null for the other reason."),
        (
            "from_ms",
            "When it began. Of a silence: the fencing less the silence in log time, which stands still without leader.",
        ),
        ("until_ms", "When it ended; null: it lasts."),
        ("seq", "The decision with which it began, of a silence the one that fenced the node."),
    ),
    query="""\
select kind, name, 'no node' as reason, cast(null as string) as node_id, from_ms, until_ms, from_seq as seq
from ownership
where node_id is null
union all
select
  kind, name, 'silence' as reason, lost.node_id, lost.append_time_ms - silence_ms as from_ms,
  lost.append_time_ms as until_ms, lost.seq
from (
  select 'slot' as kind, cast(slot_id as string) as name, from_leader as node_id, append_time_ms, seq from slot_changes
  union all
  select 'bundle' as kind, bundle_id as name, from_serving_node as node_id, append_time_ms, seq from bundle_changes
) as lost
join (select seq, node_id, silence_ms from node_changes where change = 'fenced' and reason = 'silence') as fenced
  on fenced.seq = lost.seq and fenced.node_id = lost.node_id
""",
)
BUNDLE_LOAD_WINDOWS_VIEW: Final = View(
    name="bundle_load_windows",
    row="A bundle in a window of time, as one node reported it: means and maxima.",
    tables=("bundle_load_history",),
    columns=(
        ("bundle_id", "The bundle."),
        ("namespace", "Its namespace."),
        ("node_id", "The node that reported it."),
        ("window_start_ms", "When the window begins."),
        ("window_end_ms", "When it ends."),
        ("sample_count", "The number of reports."),
        ("throughput_in_bytes_per_s", "The mean of what they say."),
        ("throughput_out_bytes_per_s", "Likewise."),
        ("message_rate_in_per_s", "Likewise."),
        ("message_rate_out_per_s", "Likewise."),
        ("greatest_throughput_in_bytes_per_s", "The greatest of what they say."),
        ("greatest_throughput_out_bytes_per_s", "Likewise."),
        ("greatest_message_rate_in_per_s", "Likewise."),
        ("greatest_message_rate_out_per_s", "Likewise."),
        ("topic_count", "The most topics of a report."),
        ("session_count", "The most producers and consumers of a report."),
    ),
    query="""\
select
  bundle_id, namespace, node_id, window_start_ms, window_start_ms + window_ms as window_end_ms,
  cast(sum(sample_count) as bigint) as sample_count,
  sum(sums.throughput_in_bytes_per_s) / sum(sample_count) as throughput_in_bytes_per_s,
  sum(sums.throughput_out_bytes_per_s) / sum(sample_count) as throughput_out_bytes_per_s,
  sum(sums.message_rate_in_per_s) / sum(sample_count) as message_rate_in_per_s,
  sum(sums.message_rate_out_per_s) / sum(sample_count) as message_rate_out_per_s,
  max(maxima.throughput_in_bytes_per_s) as greatest_throughput_in_bytes_per_s,
  max(maxima.throughput_out_bytes_per_s) as greatest_throughput_out_bytes_per_s,
  max(maxima.message_rate_in_per_s) as greatest_message_rate_in_per_s,
  max(maxima.message_rate_out_per_s) as greatest_message_rate_out_per_s,
  max(topic_count) as topic_count, max(session_count) as session_count
from bundle_load_history
group by bundle_id, namespace, node_id, window_start_ms, window_ms
""",
)

TICKS_VIEW: Final = View(
    name="ticks_by_minute",
    row="The ticks of controllers in one partition of the topic `heartbeats` in one minute.",
    tables=("ticks",),
    columns=(
        ("partition", "The partition of `heartbeats`."),
        ("minute_ms", "The beginning of the minute of append time, in milliseconds since 1970."),
        ("tick_count", "The number of ticks."),
        ("controller_ids", "The controllers that appended them, leading or not."),
        ("first_offset", "The offset of the first tick."),
        ("last_offset", "The offset of the last tick."),
        (
            "longest_gap_ms",
            "The longest time to a tick of this minute from the tick before it; null: there is none before it.",
        ),
    ),
    query="""\
select
  partition, minute_ms, cast(sum(tick_count) as bigint) as tick_count,
  array_sort(array_distinct(flatten(array_agg(controller_ids)))) as controller_ids,
  min(first_offset) as first_offset, max(last_offset) as last_offset,
  max(greatest(longest_gap_ms, gap_before_ms)) as longest_gap_ms
from (
  select
    partition, minute_ms, tick_count, controller_ids, first_offset, last_offset, longest_gap_ms,
    first_append_time_ms - lag(last_append_time_ms) over (partition by partition order by first_offset) as gap_before_ms
  from ticks
) as rows_of_batches
group by partition, minute_ms
""",
)

ALL_VIEWS: Final = (OWNERSHIP_VIEW, UNAVAILABILITY_VIEW, TICKS_VIEW, BUNDLE_LOAD_WINDOWS_VIEW)
"""All of them. A view stands behind those that it reads."""
