"""Waiting until a node that drains holds nothing any more, and showing how far it is."""

import time
from typing import Final

import click

from controlplane.bootstrap import states
from controlplane.cli.failures import ExitStatus
from controlplane.cli.invocation import Invocation
from controlplane.cli.reading import reading
from controlplane.core.identifiers import NodeId
from controlplane.core.table_replica import RoutingTable
from controlplane.ports import LogReader
from controlplane.table_follower import TableFollower

_POLL_MS: Final = 200
_TELL_EVERY_S: Final = 2.0


def held_text(table: RoutingTable, node_id: NodeId) -> str:
    """What a node holds in a table, in words; empty if it holds nothing."""
    slots = sum(1 for slot in table.slots if node_id in slot.replicas)
    bundles = sum(1 for bundle in table.bundles.values() if bundle.owner == node_id)
    return f"{slots} slots and {bundles} bundles" if slots or bundles else ""


def wait_until_drained(invocation: Invocation, node_id: NodeId, timeout_s: float) -> ExitStatus:
    """Follow the table until the node holds nothing, telling on standard error what it still holds.

    Returns:
        done when it holds nothing; failed if it never will as things stand; unreachable when the time is over.
    """
    with reading(invocation) as reader:
        reason = _why_it_stays(reader, node_id)
        if reason:
            click.echo(f"{node_id} keeps what it holds: {reason}", err=True)
            return ExitStatus.FAILED
        return _follow(TableFollower(reader), node_id, timeout_s)


def _why_it_stays(reader: LogReader, node_id: NodeId) -> str:
    """What keeps a draining node from ever giving its slots away; empty if nothing does."""
    state = states.read_state(reader)
    if state.paused:
        return "reconciliation is paused; 'controlplane table resume' lets it go on"
    if all(node.node_id == node_id for node in state.placing_nodes):
        return "there is no other node to take it over"
    return ""


def _follow(follower: TableFollower, node_id: NodeId, timeout_s: float) -> ExitStatus:
    began_s = told_s = time.monotonic()
    while True:
        progress = follower.step(_POLL_MS)
        held = held_text(follower.table, node_id) if follower.table else ""
        if progress.ended and not held:
            click.echo(f"{node_id} holds nothing any more", err=True)
            return ExitStatus.DONE
        now_s = time.monotonic()
        if held and (progress.tables or now_s - told_s > _TELL_EVERY_S):
            told_s = now_s
            click.echo(f"{node_id} still holds {held}", err=True)
        if now_s - began_s > timeout_s:
            click.echo(f"{node_id} still holds {held or 'something'} after {timeout_s:g} s (--drain-timeout)", err=True)
            return ExitStatus.UNREACHABLE
