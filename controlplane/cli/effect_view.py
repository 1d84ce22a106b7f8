"""What would happen, for people and for programs."""

import click

from controlplane.cli.output import Row, print_rows
from controlplane.core.deciding.what_if import Effect, unwanted_answers
from controlplane.core.slots.table import Slot
from controlplane.core.values.canonical import Plain, to_plain

COUNT_COLUMNS = ("node", "held_before", "held_after", "led_before", "led_after")
ROW_COLUMNS = ("slot", "before", "after")


def effect_document(effect: Effect) -> Plain:
    """Everything, for programs; of what could not be only why."""
    refusal: dict[str, Plain] = {
        "refusals": list(effect.refusals),
        "answers": [
            {"kind": answer.kind, "outcome": answer.outcome.value, "detail": answer.detail} for answer in effect.answers
        ],
    }
    if effect.refused:
        return refusal
    return {
        "moved": effect.moved,
        "moved_now": effect.moved_now,
        "rows_waiting": effect.rows_waiting,
        "least_moved": effect.least_moved,
        "leader_changes": effect.leader_changes,
        "least_leader_changes": effect.least_leader_changes,
        "nodes": [dict(row) for row in count_rows(effect)],
        "slots": [{"before": to_plain(before), "after": to_plain(after)} for before, after in effect.rows],
        "shortfalls": list(effect.shortfalls),
        **refusal,
    }


def count_rows(effect: Effect) -> list[Row]:
    """A row for each node that holds something before or after."""
    return [
        {
            "node": count.node_id,
            "held_before": count.held_before,
            "held_after": count.held_after,
            "led_before": count.led_before,
            "led_after": count.led_after,
        }
        for count in effect.counts
    ]


def print_refusal(effect: Effect) -> None:
    """Print what could not be, and nothing of what could."""
    for answer in unwanted_answers(effect.answers):
        click.echo(f"{answer.kind}: {answer.outcome.value}: {answer.detail}")
    for refusal in effect.refusals:
        click.echo(f"refused: {refusal}")
    others = len(effect.answers) + len(effect.refusals) > 1
    click.echo("nothing was planned" + (": all of it has to be possible together" if others else ""))


def print_effect(effect: Effect, row_count: int) -> None:
    """Print answers, numbers, counts and the first rows that change."""
    for answer in effect.answers:
        click.echo(f"{answer.kind}: {answer.outcome.value}: {answer.detail}")
    for shortfall in effect.shortfalls:
        click.echo(f"falls short: {shortfall}")
    click.echo(
        f"replicas that would move: {_of_least(effect.moved, effect.least_moved)}; "
        f"slots that would get another leader: {_of_least(effect.leader_changes, effect.least_leader_changes)}; "
        f"rows that would change: {len(effect.rows)}; nothing was touched"
    )
    if effect.rows_waiting:
        later = effect.moved - effect.moved_now
        click.echo(
            f"of these replicas {effect.moved_now} would move at once and {later} later: {effect.rows_waiting} planned "
            "rows wait for what the policy's pace lets go ('controlplane policy show')"
        )
    print_rows(count_rows(effect), COUNT_COLUMNS)
    if row_count and effect.rows:
        shown = effect.rows[:row_count]
        print_rows(
            [
                {"slot": after.slot_id, "before": _replicas(before), "after": _replicas(after)}
                for before, after in shown
            ],
            ROW_COLUMNS,
        )
        if len(effect.rows) > row_count:
            click.echo(f"... and {len(effect.rows) - row_count} more (--rows shows more, --format json all)")


def _of_least(made: int, least: int | None) -> str:
    return str(made) if least is None else f"{made} (least possible: {least})"


def _replicas(slot: Slot) -> str:
    return " ".join(slot.replicas) or "nobody"
