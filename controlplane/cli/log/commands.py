"""``controlplane log``: the decision log."""

import time
from pathlib import Path

import click

from controlplane.bootstrap.slot_policies import load_slot_policies
from controlplane.cli.common.connecting import LONGEST_WAIT_S
from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import (
    OutputFormat,
    format_option,
    limit_option,
    print_first_rows,
    print_json,
    print_last_rows,
    print_result,
    print_rows,
)
from controlplane.cli.common.reading import reading, say_that_nobody_led
from controlplane.cli.common.suggestions import did_you_mean
from controlplane.cli.intent_commands.operating import slot_policy_files_option
from controlplane.cli.log.rendering import verification_line
from controlplane.core.log.state import State
from controlplane.core.verification.log_verification import Complaint, LogVerification
from controlplane.errors import LogContinuityError, PrerequisiteError
from controlplane.inspection import decisions, past_states, readers
from controlplane.inspection.log_search import LogFilter, find_decisions
from controlplane.inspection.names import known_nodes
from controlplane.inspection.past_states import Measure, Moment
from controlplane.inspection.source import LogSource


@click.group()
def log() -> None:
    """The decision log: decisions, their causes, and the moves that they made."""


@log.command("show")
@click.option("--last", "count", type=click.IntRange(min=1), default=20, metavar="N", help="How many decisions.")
@click.option(
    "--seq", type=click.IntRange(min=1), metavar="N", help="Only this decision, with the rows that it changed."
)
@click.option(
    "--epoch", type=click.IntRange(min=0), metavar="N", help="Only the decisions of this epoch, with their rows."
)
@click.option(
    "--slot",
    "slot_id",
    type=click.IntRange(min=0),
    metavar="N",
    help="Only the decisions that changed the row of this slot.",
)
@click.option(
    "--node",
    "node_id",
    metavar="NAME",
    help="Only the decisions about this node, with the rows that had it before or after.",
)
@limit_option
@format_option
@pass_invocation
def show(
    invocation: Invocation,
    *,
    count: int,
    seq: int | None,
    epoch: int | None,
    slot_id: int | None,
    node_id: str | None,
    limit: int,
    output_format: OutputFormat,
) -> ExitStatus:
    """Print the last decisions, oldest first: causes, moves, certificate, shortfalls and answers to intents.

    "moves planned" and "least moves" are those of the whole plan, "moves carried out" those of the decision itself, and
    "moves left" those that the plan still has to make. A shortfall is a requirement that the plan cannot meet, with
    the reason. With --seq, --epoch, --slot or --node the whole log is read, and each changed row is printed with its
    holders before and after, the slot leader first, and the cause. Exits with 1 if the log holds no such decision.
    """
    wanted = LogFilter(seq, epoch, slot_id, node_id)
    if wanted.is_set:
        return _show_rows(invocation, wanted, count, limit, output_format)
    with reading(invocation) as source:
        last = readers.read_last_decisions(source, count)
    if not last:
        say_that_nobody_led(invocation, "decisions")
    if output_format is OutputFormat.JSON:
        print_json(list(decisions.decision_documents(last)))
    else:
        print_rows(decisions.decision_rows(last), decisions.DECISION_FIELDS)
    return ExitStatus.DONE


def _show_rows(
    invocation: Invocation, wanted: LogFilter, count: int, limit: int, output_format: OutputFormat
) -> ExitStatus:
    """Print the last decisions that match, with the rows that each changed."""
    with reading(invocation) as source:
        found, state = find_decisions(readers.read_decisions(source), wanted, count)
    if output_format is OutputFormat.JSON:
        print_json(decisions.found_documents(found))
    elif found:
        print_rows(
            decisions.decision_rows([found_decision.logged for found_decision in found]), decisions.DECISION_FIELDS
        )
        rows = decisions.change_rows(found)
        if rows:
            print_last_rows(rows, decisions.ROW_FIELDS, limit)
        else:
            click.echo("no row of the slot table changed")
    if found:
        return ExitStatus.DONE
    click.echo(f"the log holds no decision {wanted.in_words}{_why_none(wanted, state)}", err=True)
    return ExitStatus.FAILED


def _why_none(wanted: LogFilter, state: State) -> str:
    """A text for a message, that the cluster knows no such slot or node; empty if it knows them."""
    known = known_nodes(state)
    if wanted.slot_id is not None and wanted.slot_id >= len(state.slots.table):
        return f": there is no slot {wanted.slot_id}, the cluster's slots are 0 to {len(state.slots.table) - 1}"
    if wanted.node_id is not None and wanted.node_id not in known:
        return f": the cluster knows no node of that name; {did_you_mean(wanted.node_id, known)}"
    return ""


@log.command("replay")
@click.option("--to-seq", type=click.IntRange(min=1), metavar="N", help="Stop after this decision.")
@click.option("--from-snapshot", is_flag=True, help="Begin at the nearest snapshot instead of the log's start.")
@format_option
@pass_invocation
def replay(
    invocation: Invocation, *, to_seq: int | None, from_snapshot: bool, output_format: OutputFormat
) -> ExitStatus:
    """Apply the log again, and print the digest of the resulting state and the speed.

    Each decision has to continue the previous one and to lead to the state digest that it carries. The command ends at
    the first one that does not. A replay from the start and one from a snapshot lead to the same digest.
    """
    began_s = time.monotonic()
    progress = _Progress("folded")
    with reading(invocation, work="") as source:
        moment = None if to_seq is None else Moment(Measure.SEQ, to_seq)
        folded = past_states.replay(
            source, moment, from_start=not from_snapshot, on_decision=lambda _: progress.count_one()
        )
    if not folded.state.seq:
        say_that_nobody_led(invocation, "decisions")
        return ExitStatus.FAILED
    if from_snapshot and not folded.began_after:
        click.echo("there is no snapshot to begin from here: begun at the log's start", err=True)
    print_result(decisions.replay_row(folded, time.monotonic() - began_s), decisions.REPLAY_FIELDS, output_format)
    return ExitStatus.DONE


class _Progress:
    """Prints the number of processed decisions every two seconds."""

    def __init__(self, done: str) -> None:
        """``done`` is the word for the message, for example ``folded``."""
        self._done = done
        self._count = 0
        self._told_s = time.monotonic()

    def count_one(self) -> None:
        """One more."""
        self._count += 1
        if time.monotonic() - self._told_s > LONGEST_WAIT_S:
            self._told_s = time.monotonic()
            click.echo(f"{self._count:,} decisions {self._done} ...", err=True)


@log.command("verify")
@click.option(
    "--epoch",
    type=click.IntRange(min=1),
    help="Print only complaints about this epoch; the whole log is checked in any case.",
)
@slot_policy_files_option
@limit_option
@format_option
@pass_invocation
def verify(
    invocation: Invocation,
    *,
    epoch: int | None,
    slot_policy_files: tuple[Path, ...],
    limit: int,
    output_format: OutputFormat,
) -> ExitStatus:
    """Check the whole log: the chain of digests, the rules, and the proof in every certificate.

    Foreign records are skipped with a warning. A record after the last decision that has the key of the next decision
    and cannot be decoded is a complaint, because it may be the damaged last decision.

    Give --slot-policy-file only for a slot policy of your own that may leave dead nodes in the table. Exits with 1 if
    anything is wrong.
    """
    verification = LogVerification(load_slot_policies(slot_policy_files))
    with reading(invocation, work="") as source:
        complaints = _complaints(source, verification)
    newest = verification.state.epoch
    if epoch is not None:
        if epoch > newest and not verification.broken:
            raise PrerequisiteError(f"epoch {epoch} is not there yet: the newest one is {newest}")
        # After a break nothing was checked, so the break itself is printed.
        complaints = [each for each in complaints if each.epoch == epoch or (verification.broken and epoch > newest)]
    if not verification.decisions:
        say_that_nobody_led(invocation, "decisions")
    if output_format is OutputFormat.JSON:
        print_json(decisions.verification_document(verification, complaints))
    else:
        if complaints:
            print_first_rows(decisions.complaint_rows(complaints), decisions.COMPLAINT_FIELDS, limit)
        if verification.decisions:
            click.echo(verification_line(verification, complaints, epoch))
    if complaints and verification.unknown_slot_policies:
        _say_what_was_not_known(verification)
    return ExitStatus.FAILED if complaints else ExitStatus.DONE


def _say_what_was_not_known(verification: LogVerification) -> None:
    """Warn that complaints about dead nodes in the table may be wrong if the slot policy is unknown."""
    names = ", ".join(repr(name) for name in sorted(verification.unknown_slot_policies))
    click.echo(
        f"slot policy {names} is not known here, and was held to leave no dead node in the table: if it may do so, "
        "name its file with --slot-policy-file",
        err=True,
    )


def _complaints(source: LogSource, verification: LogVerification) -> list[Complaint]:
    """The complaints about the log, checked to its end or to the place where it breaks."""
    complaints: list[Complaint] = []
    progress, stream = _Progress("checked"), readers.stream_from_oldest(source)
    try:
        for logged in readers.read_decisions(source, stream=stream):
            complaints += verification.check(logged.decision)
            if verification.broken:
                return complaints
            progress.count_one()
    except LogContinuityError as error:
        return [*complaints, verification.break_off(error)]
    return [*complaints, *verification.check_end(stream.undecoded_next)]
