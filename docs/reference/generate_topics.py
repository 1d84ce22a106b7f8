"""Draw ``topics.md`` from the topics file: ``python docs/reference/generate_topics.py``.

A test compares the page with what this script would write.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from controlplane.bootstrap.topics import topic_specs  # noqa: E402 - the checkout is on the path only now
from controlplane.core.routing.rows import ROW_KINDS  # noqa: E402 - as above
from controlplane.kafka_rules.topics_file import Rule, TopicSpec  # noqa: E402 - as above

PAGE = Path(__file__).with_name("topics.md")
_ROWS = ", ".join(kind.record.__name__ for kind in ROW_KINDS)
_HEAD = f"""\
# Topics

<!-- Drawn by docs/reference/generate_topics.py from infra/kafka/topics.toml: change that, not this page. -->

Every Kafka topic of a cluster with its settings. Names begin with the cluster's name: `demo.heartbeats`.
`controlplane topics apply` creates missing topics and checks the others. A setting is a *promise* or *advice*: a
controller does not start on a topic that breaks a promise, and advice is only reported. Three copies of each topic are
advice: `controlplane topics apply` refuses to create fewer without `--least-copies`. `min.insync.replicas` is a
promise: 2 with three copies, 1 with fewer. Values are [Avro](schemas.md) in single-object encoding; inputs
[may come in Confluent's framing](../../schemas/README.md) as well. Every reader has to set
`isolation.level=read_committed`.

| topic | key | writer | content |
|---|---|---|---|
| `heartbeats` | node id | nodes; controllers (ticks) | Heartbeat, Tick |
| `load-reports` | node id | nodes | LoadReport |
| `membership` | node id | nodes | NodeJoined, NodeLeaving, NodeLeft |
| `intents` | intent id | operators | Intent |
| `candidates` | bundle id | the pipeline | Candidate |
| `decisions` | seq | the leader | Decision, in one or more parts |
| `routing-table` | `main/<kind>/<id>` | the leader | {_ROWS}; EpochMarker |
| `snapshots` | snapshot id / part | the leader | SnapshotPart |
| `dead-letters` | `topic[partition]@offset` of the refused input | the leader, the pipeline | DeadLetter |

## Reading the routing table and the decision log without this package

The rules are in [protocol](protocol.md): what counts as a row, the digest at the epoch marker, where the topic ends,
when a reader begins again, and when it refuses the topic. [Test vectors](../../schemas/vectors/README.md) check a
reader in any language. [A reader in Java](../../examples/java/README.md) is an example.
"""
_RULES = {Rule.EXACTLY: "exactly", Rule.AT_LEAST: "at least", Rule.ADVICE: "advice"}


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(_section(spec) for spec in topic_specs())


def _section(spec: TopicSpec) -> str:
    rows = [
        f"| `{setting.name}` | `{setting.value}` | {_RULES[setting.rule]} | {setting.why} |\n"
        for setting in (spec.partitions, *spec.settings)
    ]
    head = f"\n## {spec.name}\n\n{spec.why}\n\n| setting | value | promise | why |\n|---|---|---|---|\n"
    return head + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
