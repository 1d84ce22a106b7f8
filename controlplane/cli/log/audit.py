"""``controlplane audit``: repeats every decision from its recorded inputs and compares the result with the log."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from controlplane.bootstrap.slot_policies import load_slot_policies
from controlplane.cli.common.connecting import LONGEST_WAIT_S
from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, limit_option, print_first_rows, print_json
from controlplane.cli.common.reading import reading, say_that_nobody_led
from controlplane.cli.common.table_source import TableSource, reading_tables
from controlplane.cli.common.tables_option import tables_dir_option
from controlplane.cli.intent_commands.operating import slot_policy_files_option
from controlplane.core.audit.log_audit import Difference, LogAudit
from controlplane.inspection.audit_findings import DIFFERENCE_FIELDS, audit_document, difference_rows
from controlplane.inspection.auditing import Auditor
from controlplane.inspection.source import LogSource
from streaming.storage import StoragePath


@click.command("audit")
@tables_dir_option("Audit the log that the pipeline has written to these tables, in place of Kafka's.")
@slot_policy_files_option
@limit_option
@format_option
@pass_invocation
def audit(
    invocation: Invocation,
    *,
    tables_dir: StoragePath | None,
    slot_policy_files: tuple[Path, ...],
    limit: int,
    output_format: OutputFormat,
) -> ExitStatus:
    """Repeat every decision from its recorded inputs, and compare the result with the log.

    The command reads the inputs up to the positions of each decision, repeats the decision with its own code, and
    compares every field with the log. A difference is printed with its epoch, field and causes, and with the inputs
    that the decision took up. The command only reads and can run on a live cluster, up to the end that it finds at its
    start.

    Decisions whose inputs are no longer kept are only followed: their digests have to match. 'controlplane log verify'
    checks these independently. A late decision is no difference. An omission is one, at the next decision. Exits with 1
    if anything differs.

    The pipeline's tables hold decisions and inputs for longer than Kafka does. With --tables-dir the audit needs no
    Kafka, and ends before the first decision whose inputs are not in the tables yet.
    """
    log_audit = LogAudit(load_slot_policies(slot_policy_files))
    differences: list[Difference] = []
    followed: Counter[str] = Counter()
    told_s = time.monotonic()
    with _sources(invocation, tables_dir) as (decisions, inputs):
        for audited in Auditor(log_audit, decisions, inputs).run():
            differences += audited.differences
            if audited.followed_because:
                followed[audited.followed_because] += 1
            if time.monotonic() - told_s > LONGEST_WAIT_S:
                told_s = time.monotonic()
                click.echo(f"{log_audit.decisions:,} decisions audited ...", err=True)
    unread_count = 0
    if isinstance(decisions, TableSource):
        unread_count = decisions.held.unread_count
        click.echo(_extent_of_tables(decisions), err=True)
    elif not log_audit.decisions and not differences:
        say_that_nobody_led(invocation, "decisions")
    if output_format is OutputFormat.JSON:
        print_json(audit_document(log_audit, followed, differences))
    else:
        if differences:
            print_first_rows(difference_rows(differences), DIFFERENCE_FIELDS, limit)
        if log_audit.decisions or differences:
            click.echo(_sentence(log_audit, followed, differences))
    nothing_read = not log_audit.decisions and unread_count > 0
    return ExitStatus.FAILED if differences or nothing_read else ExitStatus.DONE


def _extent_of_tables(source: TableSource) -> str:
    """Which decisions the tables hold, and how many of them were left out, as a sentence."""
    held = source.held
    if not held.decision_count:
        return "the tables hold no decision"
    there = f"the tables hold {held.decision_count:,} decisions, from {held.first_seq} to {held.newest_seq}"
    if not held.unread_count:
        return there
    return f"{there}; the last {held.unread_count:,} were not looked at, because their inputs are not all in the tables"


@contextmanager
def _sources(invocation: Invocation, tables_dir: StoragePath | None) -> Iterator[tuple[LogSource, LogSource]]:
    """The decisions and their inputs. Tables are read in the same versions for both, so these end alike."""
    if tables_dir is None:
        with reading(invocation, work="") as decisions, reading(invocation, work="") as inputs:
            yield decisions, inputs
    else:
        with reading_tables(tables_dir, invocation.cluster.name) as both:
            yield both


def _sentence(log_audit: LogAudit, followed: Counter[str], differences: Sequence[Difference]) -> str:
    """The extent and the result of the audit, in lines."""
    since = "" if log_audit.first_retaken is None else f" from decision {log_audit.first_retaken} on"
    epoch = log_audit.state.epoch
    lines = [f"{log_audit.retaken:,} of {log_audit.decisions:,} decisions taken again{since}, up to epoch {epoch}"]
    lines += [f"{count:,} only followed: {reason}" for reason, count in followed.items()]
    if log_audit.broken:
        lines.append(f"the log is broken behind decision {log_audit.state.seq}: what follows was not looked at")
    outcome = "1 difference" if len(differences) == 1 else f"{len(differences):,} differences"
    lines.append(outcome if differences else "no difference")
    return "\n".join(lines)
