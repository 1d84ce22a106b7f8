"""Log time: when a decision is made, by the sum of what the clocks of the partitions have passed since the last one.

The clocks of ``heartbeats``' partitions advance with ticks, by at most 200 ms from one to the next. A broker whose
clock is ahead, even by an hour, therefore moves log time by one such gap. Several brokers have several clocks, and a
decision may come between two ticks of one partition and after those of another: the mean over the partitions of what
has passed since the positions of the last decision is exact in the long run. The greatest of them would run ahead with
frequent decisions. While a partition has no ticks, or is not read, log time is slower by its share. A partition that
was added counts from its first tick on, also where it is read only later: the time between the two, which the other
partitions have counted, counts a second time.

Below feature level 3, log time is the greatest append time of the partitions' last ticks.
"""

from dataclasses import replace

from controlplane.config import HEARTBEATS
from controlplane.core.deciding.observations import LastDecision, Observations
from controlplane.core.log.state import State
from controlplane.core.membership.log_time import SILENCE_MEMORY_MS
from controlplane.core.values.identifiers import Epoch, TopicPartition
from controlplane.core.values.positions import position_key


def since_last_decision(state: State, observations: Observations) -> Observations:
    """The observations with a note of where the clocks stood at the last decision's positions.

    It has to be taken before the ticks around those positions are forgotten, after 26 s of log time. Ticks before the
    positions name no such decision from then on (``PartitionView.without_names_before``). A controller that has
    read several decisions at once looks at them as of the last one.
    """
    if not state.cluster.has_several_brokers_rules:
        return observations
    note = observations.last_decision
    if note is None or note.seq != state.seq:
        has_changed_rows = note is not None and note.seq == state.seq - 1 and note.epoch < state.epoch
        note = LastDecision(state.seq, state.epoch, Epoch(state.epoch + (not has_changed_rows)), {})
    reached = {
        place.partition: at_offset
        for place, at_offset in _heartbeat_positions(state, observations).items()
        if place.partition not in note.clocks_ms and observations.positions[place] >= at_offset
    }
    if not reached and note is observations.last_decision:
        return observations
    views = observations.partitions
    clocks_ms = {number: views[number].clock_before(at_offset) for number, at_offset in reached.items()}
    named = {
        number: views[number].without_names_before(at_offset, note.seq, note.new_epoch)
        for number, at_offset in reached.items()
    }
    return replace(
        observations,
        partitions={**views, **named},
        last_decision=note._replace(clocks_ms={**note.clocks_ms, **clocks_ms}),
    )


def log_time_ms(state: State, observations: Observations, at_most_ms: int | None = None) -> int:
    """The log time of a decision that is made now, in milliseconds. It never goes back, and begins with an append time.

    Args:
        state: the state before the decision.
        observations: with the note of :func:`since_last_decision`.
        at_most_ms: the most that counts of each partition; None for no limit.
    """
    appended_ms = observations.now_ms or 0
    if not state.cluster.has_several_brokers_rules:
        return max(appended_ms, state.decided_at_ms)
    if not state.decided_at_ms:
        return appended_ms
    note = observations.last_decision
    clocks_ms = note.clocks_ms if note is not None and note.seq == state.seq else {}
    passed_ms = [observations.partitions[number].clock_ms - at_ms for number, at_ms in clocks_ms.items()]
    counted_ms = [each if at_most_ms is None else min(each, at_most_ms) for each in passed_ms]
    # A partition that is not read yet has its share too: what it has passed is counted when it is read.
    shares = max(len(counted_ms), _heartbeat_partitions(state), 1)
    return state.decided_at_ms + sum(counted_ms) // shares


def log_time_of_opening_ms(state: State, observations: Observations) -> int:
    """The log time of a term's first decision.

    A leader may have begun to read long after the last decision. What lies back further than observations reach does
    not count, so that every reader that has observed for so long finds the same time.
    """
    return log_time_ms(state, since_last_decision(state, observations), SILENCE_MEMORY_MS)


def log_time_of_question_ms(state: State, observations: Observations) -> int:
    """The log time of a decision that is only supposed, also by a reader that has read nothing up to the last decision.

    Such a reader knows append times only, which differ from log time by what brokers' clocks do.
    """
    noted = since_last_decision(state, observations)
    if noted.last_decision is None or not noted.last_decision.clocks_ms:
        return max(observations.now_ms or 0, state.decided_at_ms)
    return log_time_ms(state, noted)


def _heartbeat_positions(state: State, observations: Observations) -> dict[TopicPartition, int]:
    """The last decision's positions in the partitions of ``heartbeats`` from which something was read."""
    places = [place for place in observations.positions if place.topic == HEARTBEATS]
    known = [(place, state.positions.get(position_key(place))) for place in places]
    return {place: at for place, at in known if at is not None and place.partition in observations.partitions}


def _heartbeat_partitions(state: State) -> int:
    """How many partitions of ``heartbeats`` are in the last decision's positions."""
    return sum(position.startswith(f"{HEARTBEATS}[") for position in state.positions)
