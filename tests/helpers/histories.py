"""Random histories of a cluster: joins, heartbeats, leaves, silence, outages and intents."""

from typing import TypeAlias

from hypothesis import strategies as st

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.membership.node import NodeRole
from tests.helpers.world import World

History: TypeAlias = list[tuple[str, object, object]]
NODES = ("n1", "n2", "n3", "n4", "n5")

operations: st.SearchStrategy[History] = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.sampled_from(NODES), st.integers(1, 3)),
        st.tuples(st.just("weigh"), st.sampled_from(NODES), st.integers(0, 5)),
        st.tuples(st.just("session"), st.sampled_from(NODES), st.integers(1, 3)),
        st.tuples(st.just("beat"), st.sampled_from(NODES), st.integers(1, 3)),
        st.tuples(st.just("leave"), st.sampled_from(NODES), st.integers(1, 3)),
        st.tuples(st.just("left"), st.sampled_from(NODES), st.integers(1, 3)),
        st.tuples(st.just("run"), st.sampled_from((100, 700, 3_000)), st.sets(st.sampled_from(NODES))),
        st.tuples(st.just("outage"), st.integers(1_000, 60_000), st.none()),
        st.tuples(st.just("namespace"), st.sampled_from(("kv", "hot", "acme/a", "acme/us/b", "Bad Name")), st.none()),
        st.tuples(st.just("tenant"), st.sampled_from(("acme", "idle")), st.sampled_from(("", "eu", "us", "us,eu"))),
        st.tuples(st.just("no tenant"), st.sampled_from(("acme", "idle")), st.none()),
        st.tuples(
            st.sampled_from(("drain_node", "undrain_node", "exclude_node", "include_node", "reset_node")),
            st.sampled_from(NODES),
            st.none(),
        ),
        st.tuples(
            st.sampled_from(("pin_slots", "unpin_slots", "exclude_slots", "include_slots")),
            st.sampled_from(NODES),
            st.sampled_from(("0", "3,5", "all")),
        ),
        st.tuples(st.just("set_node"), st.sampled_from(NODES), st.integers(1, 4)),
        st.tuples(
            st.sampled_from(("refresh_table", "pause_reconciliation", "resume_reconciliation")), st.none(), st.none()
        ),
        st.tuples(
            st.just("change_policy"),
            st.sampled_from(
                (
                    ("replica_count", "1"),
                    ("replica_count", "3"),
                    ("slot_count", "16"),
                    ("slot_count", "4"),
                    ("silence_limit_ms", "1000"),
                    ("silence_limit_ms", "5000"),
                    ("tolerance_percent", "50"),
                )
            ),
            st.none(),
        ),
    ),
    max_size=25,
)


def play(history: History, world: World | None = None) -> World:
    """Run a history in a world, by default of eight slots, which checks every step."""
    world = world or World(ClusterPolicy(slot_count=8))
    for index, (kind, subject, argument) in enumerate(history):
        match kind:
            case "join":
                world.join(str(subject), incarnation=int(argument))  # type: ignore[call-overload]
            case "weigh":  # a process of another weight
                world.join(str(subject), incarnation=10 + index, weight=int(argument))  # type: ignore[call-overload]
            case "session":
                world.join(f"s-{subject}", incarnation=int(argument), role=NodeRole.SESSION)  # type: ignore[call-overload]
            case "beat":
                world.heartbeat(str(subject), incarnation=int(argument))  # type: ignore[call-overload]
            case "leave":
                world.leave(str(subject), incarnation=int(argument))  # type: ignore[call-overload]
            case "left":
                world.left(str(subject), incarnation=int(argument))  # type: ignore[call-overload]
            case "run":
                world.run(int(subject), tuple(sorted(argument)))  # type: ignore[call-overload]
            case "outage":
                world.tick(int(subject))  # type: ignore[call-overload]
            case _:
                ask(world, f"i{index}", kind, subject, argument)
        world.decide()
    return world


def ask(world: World, intent_id: str, kind: str, subject: object, argument: object) -> None:
    """An operator asks for something."""
    match kind, subject:
        case "namespace", _:
            world.intent(intent_id, "create_namespace", namespace=str(subject))
        case "tenant", _:
            world.intent(intent_id, "set_tenant", tenant=str(subject), clusters=str(argument))
        case "no tenant", _:
            world.intent(intent_id, "delete_tenant", tenant=str(subject))
        case "set_node", _:
            world.intent(intent_id, kind, node=str(subject), weight=str(argument), zone=f"z{argument}")
        case "change_policy", (name, value):
            world.intent(intent_id, kind, **{str(name): str(value)})
        case (("pin_slots" | "unpin_slots" | "exclude_slots" | "include_slots"), _):
            world.intent(intent_id, kind, node=str(subject), slots=str(argument))
        case _, None:
            world.intent(intent_id, kind)
        case _:
            world.intent(intent_id, kind, node=str(subject))
