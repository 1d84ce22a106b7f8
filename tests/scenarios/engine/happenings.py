"""Commands by which something happens: time passes, nodes come and go, operators ask, leaders change."""

from dataclasses import replace

from controlplane.config import INTENTS
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.intents.intent import Intent
from controlplane.core.membership.node import NodeRole
from controlplane.core.operations.policy_operations import changed_policy
from tests.scenarios.engine.call import Call, parse_duration_ms
from tests.scenarios.engine.cluster import Cluster, Process
from tests.scenarios.engine.script import ScenarioError


def policy(cluster: Cluster, call: Call) -> list[str]:
    """``policy [FIELD=VALUE ...]``: begin the log under this policy, and open its first term."""
    call.only(*call.settings, words=0)
    cluster.begin(changed_policy(ClusterPolicy(), call.settings) if call.settings else ClusterPolicy())
    return []


def join(cluster: Cluster, call: Call) -> list[str]:
    """``join NODE [incarnation=N] [weight=N] [zone=Z] [role=session] [handoffs=yes]``: start a process.

    It joins and sends heartbeats. If no incarnation is given, it is one more than the last known. Without
    ``handoffs=yes`` it takes part in no handoffs, as agents of earlier releases.
    """
    call.only("incarnation", "weight", "zone", "role", "handoffs", words=1)
    node_id = call.words[0]
    known = cluster.state.membership.nodes.get(node_id)
    running = cluster.processes.get(node_id)
    last = max(known.incarnation if known else 0, running.incarnation if running else 0)
    handoffs = call.settings.get("handoffs", "no")
    if handoffs not in ("yes", "no"):
        raise ScenarioError(f"handoffs is yes or no, found {handoffs!r}")
    role = NodeRole(call.settings.get("role", "data"))
    process = Process(call.whole("incarnation", last + 1), role, hands_off=handoffs == "yes")
    cluster.processes[node_id] = process
    zone, weight = call.settings.get("zone", ""), call.whole("weight", 1)
    cluster.world.join(node_id, process.incarnation, weight, process.role, zone, hands_off=process.hands_off)
    cluster.beat(node_id, process)
    return []


def rejoin(cluster: Cluster, call: Call) -> list[str]:
    """``rejoin NODE [zone=Z] [weight=N]``: the running process joins again under the incarnation that it has."""
    call.only("zone", "weight", words=1)
    process = _process(cluster, call.words[0])
    zone = call.settings.get("zone", "")
    weight = call.whole("weight", 1)
    hands_off = process.hands_off
    cluster.world.join(call.words[0], process.incarnation, weight, process.role, zone, hands_off=hands_off)
    return []


def kill(cluster: Cluster, call: Call) -> list[str]:
    """``kill NODE ...``: these processes end without a word; no heartbeat comes from them any more."""
    call.only()
    for node_id in call.words:
        _process(cluster, node_id)
        del cluster.processes[node_id]
    return []


def beat(cluster: Cluster, call: Call) -> list[str]:
    """``beat NODE [incarnation=N]``: one heartbeat at the present moment, also of a node that never joined."""
    call.only("incarnation", words=1)
    process = cluster.processes.get(call.words[0], Process(1, NodeRole.DATA))
    cluster.beat(call.words[0], replace(process, incarnation=call.whole("incarnation", process.incarnation)))
    return []


def leave(cluster: Cluster, call: Call) -> list[str]:
    """``leave NODE [incarnation=N]``: the node asks to be relieved of what it holds; its process goes on meanwhile."""
    call.only("incarnation", words=1)
    cluster.world.leave(call.words[0], _incarnation(cluster, call))
    return []


def left(cluster: Cluster, call: Call) -> list[str]:
    """``left NODE [incarnation=N]``: the node says that it has gone, and its process ends."""
    call.only("incarnation", words=1)
    cluster.world.left(call.words[0], _incarnation(cluster, call))
    cluster.processes.pop(call.words[0], None)
    return []


def run(cluster: Cluster, call: Call) -> list[str]:
    """``run TIME [silent=NODE,...] [unready=NODE,...] [idle=NODE,...]``: let time pass, as in ``run 3s``.

    The leader ticks and decides every 100 ms, and every process sends a heartbeat each second but those that are
    silent. Those that are unready report that they do not have their slots' data yet. Those that are idle do no step of
    a handoff; others do each at once, and say so.
    """
    call.only("silent", "unready", "idle", words=1)
    silent, unready, idle = (_running(cluster, call, name) for name in ("silent", "unready", "idle"))
    cluster.run(parse_duration_ms(call.words[0]), silent, unready, idle)
    return []


def no_controllers(cluster: Cluster, call: Call) -> list[str]:
    """``no-controllers TIME [silent=NODE,...]``: time passes, and no controller runs; nodes send heartbeats."""
    call.only("silent", words=1)
    cluster.run_without_controllers(parse_duration_ms(call.words[0]), _running(cluster, call, "silent"))
    return []


def intent(cluster: Cluster, call: Call) -> list[str]:
    """``intent KIND [NAME=VALUE ...] [as=PRINCIPAL] [id=ID]``: an operator asks for something.

    The leader answers in the next ``run``. The operator is ``tester`` if no principal is named, and the ids are
    ``intent-1``, ``intent-2`` and so on if none is given.
    """
    if len(call.words) != 1:
        raise ScenarioError(f"intent takes the kind of what is asked, found {list(call.words)}")
    cluster.intents += 1
    arguments = dict(call.settings)
    principal = arguments.pop("as", "tester")
    intent_id = arguments.pop("id", f"intent-{cluster.intents}")
    cluster.world.append(INTENTS, 0, Intent(intent_id, call.words[0], principal, arguments))
    return []


def take_over(cluster: Cluster, call: Call) -> list[str]:
    """``take-over CONTROLLER``: another controller opens the next term, which has read the last 25 s of heartbeats."""
    call.only(words=1)
    cluster.leader = call.words[0]
    cluster.world.take_over(25_000)
    return []


def _running(cluster: Cluster, call: Call, name: str) -> frozenset[str]:
    for node_id in call.names(name):
        _process(cluster, node_id)
    return call.names(name)


def _process(cluster: Cluster, node_id: str) -> Process:
    if node_id not in cluster.processes:
        running = ", ".join(sorted(cluster.processes)) or "none"
        raise ScenarioError(f"node {node_id!r} has no process that runs; running are {running}")
    return cluster.processes[node_id]


def _incarnation(cluster: Cluster, call: Call) -> int:
    process = cluster.processes.get(call.words[0])
    return call.whole("incarnation", process.incarnation if process else 1)
