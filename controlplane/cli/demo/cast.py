"""The members of the demo: the command line of each process, and the settings that differ from the defaults."""

import uuid

from controlplane.adapters.kafka_admin import apply_topics
from controlplane.bootstrap import connections
from controlplane.bootstrap.members import routing_client
from controlplane.bootstrap.topics import topic_specs
from controlplane.cli.demo.checks import StepFailedError
from controlplane.cli.demo.stage import Stage
from controlplane.core.intents.events import IntentOutcome
from controlplane.core.intents.intent import Intent, IntentKind
from controlplane.core.values.identifiers import ControllerId, NodeId
from controlplane.inspection.answers import AnswerWatch
from controlplane.intents_client import submit_intent
from controlplane.ports import LogReader
from controlplane.routing import RoutingClient

CALM_NAMESPACE = "demo/calm"
HOT_NAMESPACE = "demo/hot"
MESSAGES_PER_S = {CALM_NAMESPACE: 16, HOT_NAMESPACE: 120}
"""By namespace, to all of its topics together."""
KEY_REQUESTS_PER_S = 50
TOPICS = 8
"""In each namespace."""
LOAD_REPORT_INTERVAL_S = 2
LOWERED_RULES = (
    "split.max_message_rate_per_s=25",
    "shed.threshold_percent=5",
    "shed.min_throughput_mib_per_s=0",
    "evaluation_interval_ms=5000",
    "grace_period_ms=0",
)
"""Lower than the published thresholds, which are for machines that serve tens of thousands of messages per second."""

_ANSWER_TIMEOUT_MS = 15_000
_FIRST_DELTA_TABLE = "load_reports"


class Cast:
    """Starts and ends each member of the cast on a stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._controllers: dict[ControllerId, int] = {}

    def apply_topics(self) -> tuple[str, ...]:
        """Create the cluster's topics."""
        report = apply_topics(
            self.stage.kafka.bootstrap_servers,
            self.stage.cluster.name,
            topic_specs(),
            self.stage.kafka.security,
            least_copies=1,
        )
        return (*report.created, *report.verified)

    def open_log(self) -> LogReader:
        """A reader of the decisions, heartbeats and candidates."""
        return connections.open_reader(self.stage.cluster, self.stage.kafka)

    def open_client(self) -> RoutingClient:
        """A routing client, as in a user's program."""
        return routing_client(self.stage.cluster.name, self.stage.kafka.bootstrap_servers)

    def start_controller(self, number: int) -> ControllerId:
        """Start a controller, or start it again."""
        controller_id = f"controller-{number}"
        self._controllers[controller_id] = number
        self.stage.start_command(controller_id, "controller", "run", "--controller-id", controller_id)
        return controller_id

    def start_controller_again(self, controller_id: ControllerId) -> None:
        """Start a controller that was killed; it is a standby from now on."""
        self.start_controller(self._controllers[controller_id])

    def kill_controller(self, controller_id: ControllerId) -> None:
        """SIGKILL a controller."""
        self.stage.processes[controller_id].kill()

    def start_node(self, number: int) -> NodeId:
        """Start a node, which serves keys by slot and topics by bundle, or start it again."""
        node_id = self.node_id(number)
        options = ("--load-interval-s", str(LOAD_REPORT_INTERVAL_S), "--directory", str(self.stage.topics_dir))
        self.stage.start_module(node_id, "examples.kv_and_pubsub", "--node-id", node_id, *options)
        return node_id

    def kill_node(self, number: int) -> None:
        """SIGKILL a node."""
        self.stage.processes[self.node_id(number)].kill()

    def node_id(self, number: int) -> NodeId:
        """The name of a node."""
        return f"node-{number}"

    def start_pipeline(self) -> None:
        """Start the Spark application with the lowered thresholds."""
        rules = [word for rule in LOWERED_RULES for word in ("--rule", rule)]
        words = ("pipeline", "run", "--tables-dir", str(self.stage.delta_dir), "--buckets", "2")
        self.stage.start_command("pipeline", *words, *rules)

    def pipeline_writes(self) -> str | None:
        """The folder of a table whose second version, the first with rows, the pipeline has written; else None."""
        log = self.stage.delta_dir / _FIRST_DELTA_TABLE / "_delta_log"
        return str(log.parent) if len(list(log.glob("*.json"))) > 1 else None

    def start_key_traffic(self) -> None:
        """Start a client that reads and writes keys."""
        self.stage.start_module("traffic-keys", "examples.kv.client", "--rate", str(KEY_REQUESTS_PER_S))

    def start_traffic(self, namespace: str) -> None:
        """Start a client that sends and receives messages of topics in a namespace."""
        rate = str(MESSAGES_PER_S[namespace])
        options = ("--namespace", namespace, "--rate", rate, "--topics", str(TOPICS))
        self.stage.start_module(_traffic(namespace), "examples.pubsub.client", *options)

    def stop_traffic(self, namespace: str) -> None:
        """End a client; its counts stay."""
        self.stage.processes[_traffic(namespace)].stop()

    def create_namespace(self, name: str) -> None:
        """Ask the leader for a namespace and wait for its answer.

        Raises:
            StepFailedError: it was refused, or no leader answered.
        """
        cluster, kafka = self.stage.cluster, self.stage.kafka
        source, writer = connections.open_source(cluster, kafka), connections.open_intent_writer(cluster, kafka)
        try:
            watch = AnswerWatch(source)
            intent = Intent(
                f"demo-{uuid.uuid4().hex[:12]}", IntentKind.CREATE_NAMESPACE.value, "demo", {"namespace": name}
            )
            submit_intent(writer, intent)
            answer = watch.wait(intent.intent_id, _ANSWER_TIMEOUT_MS)
        finally:
            writer.close()
            source.close()
        if answer is None or answer.event.outcome is not IntentOutcome.DONE:
            raise StepFailedError(f"namespace {name} was not created: {answer.event.detail if answer else 'no answer'}")


def _traffic(namespace: str) -> str:
    return f"traffic-{namespace.rpartition('/')[2]}"
