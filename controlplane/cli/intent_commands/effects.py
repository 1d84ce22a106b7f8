"""The effect of supposed changes, as text."""

import click

from controlplane.cli.common.output import print_rows
from controlplane.core.deciding.what_if import Effect, unwanted_answers
from controlplane.core.slots.table import Slot
from controlplane.inspection.effects import BUNDLE_FIELDS, COUNT_FIELDS, bundle_rows, count_rows

ROW_COLUMNS = ("slot", "before", "after")


def print_refusal(effect: Effect) -> None:
    """Print the answers to the changes that are refused, and no others."""
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
    if effect.bundle_orders or effect.bundles:
        _print_bundles(effect, row_count)
    if effect.bundle_orders and not effect.rows:
        return  # The changes are about bundles alone.
    _print_slots(effect, row_count)


def _print_bundles(effect: Effect, row_count: int) -> None:
    """Print the orders that would be given, and the bundles that change at once."""
    click.echo(
        f"bundles that would get an order: {len(effect.bundle_orders)}; bundles that would change at once: "
        f"{len(effect.bundles)}, the others in their turn (bundle_moves_in_flight); nothing was touched"
    )
    rows = bundle_rows(effect)
    if row_count:
        print_rows(rows[:row_count], BUNDLE_FIELDS)
        _print_rest(len(rows) - row_count)


def _print_slots(effect: Effect, row_count: int) -> None:
    click.echo(
        f"replicas that would move: {_of_least(effect.moved, effect.least_moved)}; "
        f"slots that would get another leader: {_of_least(effect.leader_changes, effect.least_leader_changes)}; "
        f"rows that would change: {len(effect.rows)}; nothing was touched"
    )
    if effect.rows_waiting:
        later = effect.moved - effect.moved_now
        click.echo(
            f"of these replicas {effect.moved_now} would move at once and {later} later: {effect.rows_waiting} planned "
            "rows wait for moves_in_flight, cool_down_ms or return_window_ms ('controlplane policy show')"
        )
    print_rows(count_rows(effect), COUNT_FIELDS)
    if row_count and effect.rows:
        shown = effect.rows[:row_count]
        print_rows(
            [
                {"slot": after.slot_id, "before": _replicas(before), "after": _replicas(after)}
                for before, after in shown
            ],
            ROW_COLUMNS,
        )
        _print_rest(len(effect.rows) - row_count)


def _print_rest(count: int) -> None:
    if count > 0:
        click.echo(f"... and {count} more (--rows shows more, --format json all)")


def _of_least(made: int, least: int | None) -> str:
    return str(made) if least is None else f"{made} (least possible: {least})"


def _replicas(slot: Slot) -> str:
    return " ".join(slot.replicas) or "nobody"
