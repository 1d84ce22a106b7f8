"""The steps of the demo, in order, with their checks."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from controlplane.cli.common.output import cell_text
from controlplane.cli.demo import evidence
from controlplane.cli.demo.cast import CALM_NAMESPACE, HOT_NAMESPACE, LOWERED_RULES, Cast
from controlplane.cli.demo.checks import Check, Checklist, StepFailedError
from controlplane.cli.demo.delta import ask_delta, missing_rows
from controlplane.cli.demo.picture import Picture, take_picture
from controlplane.cli.demo.summary import QueryResult, StepReport
from controlplane.cli.demo.watching import Observer, wall_ms
from controlplane.core.operations.slot_numbers import counted
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import NodeId
from controlplane.inspection.readers import LoggedDecision

FIRST_NODES = 6
VICTIM = 2
"""The number of the node that is killed."""
PIPELINE_DEADLINE_S = 300
"""For Spark to start and a candidate to appear. An idle machine needs a tenth of it."""
TABLES_DEADLINE_S = 120
"""For the batch of a candidate to be written to every table."""
ASK_EVERY_S = 1.0
SETTLED_S = 3.0
"""How long requests have to be answered without a failure for traffic to count as undisturbed again."""


class Play:
    """Runs the steps one after another. Each appends its report to :attr:`steps`, also if it fails.

    Attributes:
        steps: what was measured so far.
        say: prints a line that stays.

    Args:
        cast: starts and kills the processes.
    """

    def __init__(self, cast: Cast) -> None:
        self.say: Callable[[str], None] = print
        self.steps: list[StepReport] = []
        self._cast = cast
        self._stage = cast.stage
        self._observer: Observer | None = None
        self._checklist = Checklist(self._note, self._watch)
        self._began = time.monotonic()
        self._waiting_for = ""
        self._decided_before = 0

    @property
    def elapsed_s(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    @property
    def observer(self) -> Observer:
        """The observer of the log, which exists from the first step on."""
        if self._observer is None:
            raise RuntimeError("nothing is observed before the services run")
        return self._observer

    def picture(self) -> Picture:
        """The present moment, for the screen."""
        step = self.steps[-1].title if self.steps else "beginning"
        return take_picture(self._observer, self.elapsed_s, step, self._waiting_for, self._stage.counts())

    def close(self) -> None:
        """Stop observing."""
        if self._observer is not None:
            self._observer.stop()

    def run(self) -> None:
        """Run all steps.

        Raises:
            StepFailedError: a step did not have the expected result.
        """
        self._start()
        self._join()
        self._kill_node()
        self._kill_leader()
        self._heat()

    def _start(self) -> None:
        with self._step("start and first table") as report:
            stage, expect = self._stage, self._checklist.expect
            stage.start_services()
            expect(
                "Kafka and Valkey answer",
                lambda: stage.services_answer or None,
                90,
                lambda _: stage.kafka.bootstrap_servers,
            )
            topics = self._cast.apply_topics()
            self._checklist.require("all topics have their settings", holds=bool(topics), seen=f"{len(topics)} topics")
            self._cast.start_pipeline()
            for number in (1, 2):
                self._cast.start_controller(number)
            self._observer = Observer(self._cast.open_log(), self._cast.open_client())
            self._observer.start()
            expect(
                "a controller opens the first term",
                lambda: evidence.last_opening(self.observer.decisions),
                60,
                lambda opening: f"{opening.controller_id}, term {opening.term}",
            )
            started_ms = wall_ms()
            for number in range(1, FIRST_NODES + 1):
                self._cast.start_node(number)
            table = self._expect_whole_table(FIRST_NODES, 60)
            report.readable_ms = self._swapped_ms(table) - started_ms
            self._expect_namespaces()
            self._cast.start_key_traffic()
            self._cast.start_traffic(CALM_NAMESPACE)
            self._expect_answers("keys are read and written, and messages sent", 200, 30)
            self._require_undisturbed()

    def _join(self) -> None:
        with self._step("one more node joins") as report:
            number = FIRST_NODES + 1
            node_id = self._cast.node_id(number)
            began_ms = wall_ms()
            self._cast.start_node(number)
            admitted = self._checklist.expect(
                f"{node_id} is admitted", lambda: evidence.admission_of(self.observer.decisions, node_id), 30, _place
            )
            table = self._expect_whole_table(number, 30)
            report.detected_ms = admitted.append_time_ms - began_ms
            report.readable_ms = self._swapped_ms(table) - began_ms
            self._require_least_movement()
            self._expect_balance()
            self._expect_caught_up()
            self._require_undisturbed()

    def _kill_node(self) -> None:
        victim = self._cast.node_id(VICTIM)
        with self._step(f"{victim} is killed (SIGKILL)") as report:
            before = len(self.observer.decisions)
            killed_ms = wall_ms()
            self._cast.kill_node(VICTIM)
            fenced = self._checklist.expect(
                f"{victim} is fenced for its silence",
                lambda: evidence.fencing_of(self.observer.decisions[before:], victim),
                15,
                _place,
            )
            table = self._expect_whole_table(FIRST_NODES, 15)
            report.detected_ms = fenced.append_time_ms - killed_ms
            report.readable_ms = self._swapped_ms(table) - killed_ms
            self._require_least_movement()
            lost = [
                slot
                for certificate in evidence.certificates_of(self.observer.decisions[before:])
                for slot in certificate.lost_slots
            ]
            self._checklist.require("no slot lost its last replica", holds=not lost, seen=counted(len(lost), "slot"))
            self._expect_balance()
            self._expect_caught_up()
            self._require_undisturbed()

    def _kill_leader(self) -> None:
        opening = evidence.last_opening(self.observer.decisions)
        leader = opening.controller_id if opening else ""
        with self._step(f"the leader {leader} is killed (SIGKILL)") as report:
            before = len(self.observer.decisions)
            killed_ms = wall_ms()
            self._cast.kill_controller(leader)
            taken = self._checklist.expect(
                "the other controller opens the next term",
                lambda: _opening_by_another(self.observer.decisions[before:], leader),
                20,
                _place,
            )
            report.detected_ms = taken.append_time_ms - killed_ms
            self._cast.start_controller_again(leader)
            victim = self._cast.node_id(VICTIM)
            self._cast.start_node(VICTIM)
            self._checklist.expect(
                f"the new leader admits {victim} again",
                lambda: evidence.admission_of(self.observer.decisions[before:], victim),
                30,
                _place,
            )
            table = self._expect_whole_table(FIRST_NODES + 1, 30)
            report.readable_ms = self._swapped_ms(table) - killed_ms
            self._require_least_movement()
            self._expect_caught_up()
            self._require_undisturbed()

    def _heat(self) -> None:
        with self._step(f"namespace {HOT_NAMESPACE} becomes hot") as report:
            self.say("    thresholds lowered for the demo: " + ", ".join(LOWERED_RULES))
            began_ms = wall_ms()
            self._cast.start_traffic(HOT_NAMESPACE)
            expect = self._checklist.expect
            expect("the pipeline writes to Delta", self._cast.pipeline_writes, PIPELINE_DEADLINE_S)
            candidate = expect(
                f"a bundle of {HOT_NAMESPACE} becomes a candidate",
                lambda: evidence.candidate_of(self.observer.candidates, HOT_NAMESPACE),
                PIPELINE_DEADLINE_S,
                lambda found: f"{found.action} {found.bundle_id} of {found.node_id}: {cell_text(dict(found.evidence))}",
            )
            report.detected_ms = candidate.window_end_ms - began_ms
            report.readable_ms = wall_ms() - began_ms
            self._require_undisturbed()
            self._cast.stop_traffic(HOT_NAMESPACE)

    def ask_delta(self) -> list[QueryResult]:
        """Run the closing queries on the Delta tables; candidates of the hot namespace have to be among the rows.

        The pipeline produces a candidate before it adds it to its table, and writes the loads of nodes last. So the
        queries are repeated until the rows are there.

        Raises:
            StepFailedError: the command failed, or the rows are not there in time.
        """
        self._note("SQL on the Delta tables", None)
        deadline_s = time.monotonic() + TABLES_DEADLINE_S
        while missing := missing_rows(results := ask_delta(self._stage), HOT_NAMESPACE):
            if time.monotonic() >= deadline_s:
                raise StepFailedError(missing)
            self._watch()
            time.sleep(ASK_EVERY_S)
        return results

    # -- code of all steps -----------------------------------------------------------------------------------------

    @contextmanager
    def _step(self, title: str) -> Iterator[StepReport]:
        """One step: its checks, and what was decided, published and requested while it ran."""
        report = StepReport(title)
        self.steps.append(report)
        self._checklist = Checklist(self._note, self._watch)
        self.say(f"[{self.elapsed_s:5.0f} s] step {len(self.steps)}: {title}")
        began = time.monotonic()
        self._decided_before = len(self._observer.decisions) if self._observer else 0
        counted = self._stage.counts()
        try:
            yield report
            chain = evidence.broken_chain(self.observer.decisions)
            self._checklist.require(
                "no seq or epoch is missing or repeated", holds=chain is None, seen=chain or "whole"
            )
        finally:
            report.checks = self._checklist.checks
            report.window_s = time.monotonic() - began
            report.counts = self._stage.counts() - counted
            if self._observer is not None:
                _measure(report, self._observer.decisions[self._decided_before :])

    def _note(self, sentence: str, check: Check | None) -> None:
        self._waiting_for = sentence
        if check is not None:
            mark = "ok" if check.passed else "FAILED"
            self.say(f"    {mark}: {sentence} ({check.seen}; {check.after_s:.1f} s)")

    def _watch(self) -> None:
        self._stage.watch()
        if self._observer is not None:
            self._observer.check()

    def _expect_whole_table(self, node_count: int, deadline_s: float) -> RoutingTable:
        """Wait for a table in which so many nodes live and every slot has its leader and followers among them."""

        def probe() -> RoutingTable | None:
            table = self.observer.table
            if table is None or len(evidence.active_data_nodes(table)) != node_count:
                return None
            return None if evidence.unserved_slots(table) or evidence.unowned_bundles(table) else table

        return self._checklist.expect(
            f"{node_count} nodes live, every slot has its leader and followers, every bundle its owner",
            probe,
            deadline_s,
            lambda table: f"epoch {table.epoch}, term {table.term}",
        )

    def _expect_namespaces(self) -> None:
        """Create the namespaces, after the nodes that share their bundles have joined."""
        for namespace in (CALM_NAMESPACE, HOT_NAMESPACE):
            self._cast.create_namespace(namespace)

        def probe() -> set[NodeId] | None:
            table = self.observer.table
            owners = set() if table is None else {bundle.owner for bundle in table.bundles.values() if bundle.owner}
            return owners if len(owners) == FIRST_NODES else None

        self._checklist.expect(
            f"the bundles of {CALM_NAMESPACE} and {HOT_NAMESPACE} are shared by all nodes",
            probe,
            30,
            lambda owners: ", ".join(sorted(owners)),
        )

    def _expect_caught_up(self) -> None:
        """Wait until every node reports that it uses the newest table."""

        def probe() -> int | None:
            table = self.observer.table
            if table is None or not evidence.all_caught_up(table, self.observer.heartbeats.last):
                return None
            return table.epoch

        self._checklist.expect("every node works with the newest table", probe, 20, lambda epoch: f"epoch {epoch}")

    def _expect_answers(self, sentence: str, count: int, deadline_s: float) -> None:
        answered = self._stage.counts().answered

        def probe() -> int | None:
            more = self._stage.counts().answered - answered
            return more if more >= count else None

        self._checklist.expect(sentence, probe, deadline_s, lambda more: f"{more} answered")

    def _require_undisturbed(self) -> None:
        """Wait for a period in which requests are answered and none fails."""
        since_s = time.monotonic()
        start = self._stage.counts()

        def probe() -> int | None:
            nonlocal since_s, start
            counts = self._stage.counts()
            if counts.failed > start.failed:
                since_s, start = time.monotonic(), counts
            quiet = time.monotonic() - since_s >= SETTLED_S
            return counts.answered - start.answered if quiet and counts.answered > start.answered else None

        self._checklist.expect(
            f"requests are answered for {SETTLED_S:g} s without a failure", probe, 30, lambda more: f"{more} answered"
        )

    def _require_least_movement(self) -> None:
        """Every certificate of this step's decisions reaches its proven least."""
        certificates = evidence.certificates_of(self.observer.decisions[self._decided_before :])
        moved = sum(certificate.moved for certificate in certificates)
        least = sum(certificate.least_moved for certificate in certificates)
        self._checklist.require(
            "no more replicas moved than the proven least",
            holds=bool(certificates) and moved == least,
            seen=f"{moved} of {least} in {counted(len(certificates), 'decision')}",
        )

    def _expect_balance(self) -> None:
        """Wait until what was planned is carried out: leaders serve on until the next ones have copied their slots."""

        def probe() -> dict[NodeId, int] | None:
            decisions, table = self.observer.decisions, self.observer.table
            if table is None or not decisions or decisions[-1].decision.moves_left:
                return None
            counts = evidence.replica_counts(table)
            return counts if max(counts.values()) - min(counts.values()) <= 1 else None

        self._checklist.expect(
            "replicas are spread evenly",
            probe,
            30,
            lambda counts: ", ".join(f"{node_id} {count}" for node_id, count in counts.items()),
        )

    def _swapped_ms(self, table: RoutingTable) -> int:
        swapped = evidence.first_swap(self.observer.tables, table.epoch)
        return swapped.swapped_at_ms if swapped else wall_ms()


def _measure(report: StepReport, decisions: list[LoggedDecision]) -> None:
    """Fill in the effects of the step's decisions."""
    epochs = [logged.decision.epoch for logged in decisions]
    certificates = evidence.certificates_of(decisions)
    report.epochs = (epochs[0], epochs[-1]) if epochs else None
    report.moved = sum(certificate.moved for certificate in certificates)
    report.least_moved = sum(certificate.least_moved for certificate in certificates)
    report.moves_carried_out = sum(logged.decision.moves_carried_out for logged in decisions)
    report.leader_changes = sum(logged.decision.leader_changes_carried_out for logged in decisions)


def _opening_by_another(decisions: list[LoggedDecision], leader: str) -> LoggedDecision | None:
    return next(
        (
            logged
            for logged in decisions
            if logged.decision.controller_id != leader and evidence.last_opening([logged]) is not None
        ),
        None,
    )


def _place(logged: LoggedDecision) -> str:
    return f"seq {logged.decision.seq}, epoch {logged.decision.epoch}, term {logged.decision.term}"
