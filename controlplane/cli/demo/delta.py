"""The demo's closing queries of the Delta tables, by ``controlplane sql``."""

import json
import subprocess
from collections.abc import Sequence

from controlplane.cli.demo.checks import StepFailedError
from controlplane.cli.demo.stage import Stage
from controlplane.cli.demo.summary import QueryResult

CANDIDATES_QUERY = """\
select 'split' as action, bundle_id, node_id, round(message_rate_per_s, 1) as rate_per_s,
  cast(to_json(exceeded) as string) as why from split_candidates
union all
select 'shed', bundle_id, node_id, null,
  concat('usage ', round(smoothed_usage, 2), ', mean ', round(mean_usage, 2)) from shed_candidates
order by action desc, bundle_id limit 8"""
DECISIONS_QUERY = """\
select term, controller_id, count(*) as decisions, sum(moves_carried_out) as moves_carried_out,
  sum(least_moved) as least_moved, sum(leader_changes_carried_out) as leader_changes_carried_out,
  min(seq) as first_seq, max(seq) as last_seq, max(epoch) as last_epoch
from decisions group by term, controller_id order by term"""
LOAD_QUERY = """\
select node_id, round(weighted_usage, 3) as usage, bundle_count,
  round(short_term.message_rate_in_per_s, 1) as rate_in_per_s,
  round(short_term.message_rate_out_per_s, 1) as rate_out_per_s from broker_load order by node_id"""
QUERIES = (CANDIDATES_QUERY, LOAD_QUERY, DECISIONS_QUERY)
SQL_TIMEOUT_S = 60.0


def ask_delta(stage: Stage, statements: tuple[str, ...] = QUERIES) -> list[QueryResult]:
    """Run the statements in one command; returns a result for each, in order.

    Raises:
        StepFailedError: the command failed or took too long.
    """
    command = stage.command("sql", "--tables-dir", str(stage.delta_dir), "--format", "json", *statements)
    try:
        done = subprocess.run(
            command,
            env=stage.environment(),
            cwd=stage.home,
            capture_output=True,
            text=True,
            timeout=SQL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StepFailedError(f"controlplane sql did not answer within {SQL_TIMEOUT_S:g} s") from error
    if done.returncode != 0:
        raise StepFailedError(f"controlplane sql ended with status {done.returncode}: {done.stderr[-2_000:]}")
    return [QueryResult(answer["statement"], answer["rows"]) for answer in json.loads(done.stdout)]


def missing_rows(results: Sequence[QueryResult], namespace: str) -> str:
    """What the answers to :data:`QUERIES` lack, as a sentence; empty if nothing.

    Each query has rows, and the first one a candidate of the namespace.
    """
    bundles = [str(row["bundle_id"]) for row in results[0].rows]
    if not any(bundle_id.startswith(f"{namespace}/") for bundle_id in bundles):
        return f"no candidate of namespace {namespace} came back from Delta, only {bundles}"
    empty = [result.statement for result in results if not result.rows]
    return f"no rows came back from Delta for: {empty[0]}" if empty else ""
