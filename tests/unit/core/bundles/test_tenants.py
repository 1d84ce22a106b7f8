"""Tenants: the clusters in which their namespaces may be, and what is refused because of them."""

from dataclasses import replace

import pytest

from controlplane.core.bundles.events import NamespaceCreated, TenantDeleted, TenantSet
from controlplane.core.bundles.tenants import Tenant, namespaces_not_allowed, parse_clusters
from controlplane.core.cluster.events import TermOpened
from controlplane.core.deciding.decide import Opening, open_term
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.log.apply import apply
from controlplane.core.log.events import Event
from controlplane.core.values.identifiers import Term
from controlplane.core.verification.invariants import check, check_step
from controlplane.errors import ConfigurationError, InvariantViolationError
from tests.helpers.logs import complaints_of
from tests.helpers.recorded_log import RecordedLog
from tests.helpers.world import World

DONE, REFUSED = IntentOutcome.DONE, IntentOutcome.REFUSED
NAMESPACES = ("kv", "acme", "acme/a", "acme/eu/b", "acme/us/c", "other/us/d", "acmes/x", "other/acme/e")


@pytest.fixture
def world() -> World:
    """A cluster that is called ``eu``."""
    made = World()
    made.admit("n1")
    return made


def create(world: World, name: str) -> IntentAnswered:
    """What the leader answers to a new namespace."""
    return world.ask("create_namespace", namespace=name)


def set_tenant(world: World, name: str, clusters: str) -> IntentAnswered:
    """What the leader answers to a tenant."""
    return world.ask("set_tenant", tenant=name, clusters=clusters)


def test_clusters_are_sorted_and_counted_once() -> None:
    """So that equal tenants have equal digests; an empty list is no cluster."""
    assert parse_clusters("us,eu,us") == ("eu", "us")
    assert parse_clusters("") == ()


@pytest.mark.parametrize("text", [",", "eu,", ",eu", "eu,,us", "eu, us", "a/b", "-eu", "x" * 128])
def test_other_lists_of_clusters_are_refused(text: str) -> None:
    """What could not stand in a namespace's name is no cluster's name, and a forgotten one is not left out."""
    with pytest.raises(ConfigurationError, match=r"clusters: cluster '.*': take 1 to 127 of"):
        parse_clusters(text)


@pytest.mark.parametrize(
    ("clusters", "outside"),
    [
        ((), ["acme/a", "acme/eu/b", "acme/us/c"]),
        (("eu",), ["acme/us/c"]),
        (("us",), ["acme/a", "acme/eu/b"]),
        (("eu", "us"), []),
        (("acme", "a"), ["acme/a", "acme/eu/b", "acme/us/c"]),
    ],
)
def test_a_namespace_is_in_the_cluster_of_its_name_or_in_this_one(
    clusters: tuple[str, ...], outside: list[str]
) -> None:
    """Those of other tenants, and of none, do not count, however alike their names are."""
    assert list(namespaces_not_allowed(Tenant("acme", clusters), NAMESPACES, "eu")) == outside


def test_a_tenant_that_is_not_registered_is_not_restricted(world: World) -> None:
    """Before it is registered, and after it is deleted; names without a tenant never are."""
    assert set_tenant(world, "acme", "").outcome is DONE
    assert world.ask("delete_tenant", tenant="acme").detail == "tenant 'acme' is deleted"
    for name in ("acme/a", "acme/us/b", "acme"):
        assert create(world, name).outcome is DONE, name


def test_a_namespace_is_refused_where_its_tenant_is_not_allowed(world: World) -> None:
    """The name's cluster counts, otherwise this one; nothing else happens, and the answer says what is allowed."""
    assert set_tenant(world, "acme", "us").detail == "tenant 'acme' allows cluster us"
    answer = create(world, "acme/a")
    assert (answer.outcome, answer.detail) == (
        REFUSED,
        "namespace 'acme/a' would be in cluster 'eu': tenant 'acme' allows cluster us",
    )
    assert [type(event) for event in world.decisions[-1].events] == [IntentAnswered]
    assert create(world, "acme/eu/a").detail == (
        "namespace 'acme/eu/a' would be in cluster 'eu': tenant 'acme' allows cluster us"
    )
    assert create(world, "acme/us/a").outcome is DONE
    assert set_tenant(world, "acme", "us,eu").detail == "tenant 'acme' allows clusters eu, us"
    assert create(world, "acme/a").outcome is DONE
    assert create(world, "acme/eu/a").outcome is DONE
    assert create(world, "acme/asia/a").detail.endswith("cluster 'asia': tenant 'acme' allows clusters eu, us")


def test_a_tenant_without_clusters_has_no_namespace(world: World) -> None:
    """An empty list closes a tenant; it does not open it to every cluster."""
    assert set_tenant(world, "acme", "").detail == "tenant 'acme' allows no cluster"
    assert create(world, "acme/a").detail.endswith("tenant 'acme' allows no cluster")
    assert create(world, "acme").outcome is DONE  # a namespace without a tenant


def test_a_cluster_in_use_cannot_be_taken_from_a_tenant(world: World) -> None:
    """Neither from a registered tenant, nor by registering one; the answer counts and names the namespaces."""
    for name in ("acme/b", "acme/a", "acme/us/a", "acmes/us/a"):
        assert create(world, name).outcome is DONE
    assert set_tenant(world, "acme", "asia").detail == (
        "tenant 'acme' has 3 namespaces where it would not be allowed any more, in cluster 'eu', cluster 'us': "
        "acme/a, acme/b, acme/us/a"
    )
    assert world.state.bundles.tenants == {}
    assert set_tenant(world, "acme", "asia,eu,us").outcome is DONE
    answer = set_tenant(world, "acme", "asia,eu")
    assert (answer.outcome, answer.detail) == (
        REFUSED,
        "tenant 'acme' has 1 namespace where it would not be allowed any more, in cluster 'us': acme/us/a",
    )
    assert world.state.bundles.tenants["acme"].allowed_clusters == ("asia", "eu", "us")
    assert set_tenant(world, "acme", "us,eu").outcome is DONE


def test_a_tenant_with_namespaces_cannot_be_deleted(world: World) -> None:
    """The answer counts and names them; deleting a tenant that is not registered changes nothing."""
    assert set_tenant(world, "acme", "eu").outcome is DONE
    for number in range(7):
        assert create(world, f"acme/{number}").outcome is DONE
    answer = world.ask("delete_tenant", tenant="acme")
    assert (answer.outcome, answer.detail) == (
        REFUSED,
        "tenant 'acme' still has 7 namespaces: acme/0, acme/1, acme/2, acme/3, acme/4 and 2 more",
    )
    assert "acme" in world.state.bundles.tenants
    before = world.state.digest()
    answer = world.ask("delete_tenant", tenant="acm")
    assert (answer.outcome, answer.detail) == (DONE, "tenant 'acm' is not registered")
    assert world.decisions[-1].events == (answer,)
    assert before != world.state.digest()  # by the answer alone


def test_setting_a_tenant_again_changes_nothing(world: World) -> None:
    """Whatever the order of its clusters."""
    assert set_tenant(world, "acme", "us,eu").outcome is DONE
    answer = set_tenant(world, "acme", "eu,us,eu")
    assert (answer.outcome, answer.detail) == (DONE, "tenant 'acme' allows clusters eu, us already")
    assert world.decisions[-1].events == (answer,)


def test_intents_of_one_decision_apply_in_their_order(world: World) -> None:
    """Each sees what those before it left, and the invariants judge only the result."""
    for intent_id, kind, arguments in (
        ("i1", "set_tenant", {"tenant": "acme", "clusters": ""}),
        ("i2", "create_namespace", {"namespace": "acme/us/a"}),
        ("i3", "delete_tenant", {"tenant": "acme"}),
        ("i4", "create_namespace", {"namespace": "acme/us/a"}),
        ("i5", "set_tenant", {"tenant": "acme", "clusters": "us"}),
        ("i6", "set_tenant", {"tenant": "acme", "clusters": "eu"}),
        ("i7", "delete_tenant", {"tenant": "acme"}),
        ("i8", "set_tenant", {"tenant": "acme", "clusters": "asia,us"}),
    ):
        world.intent(intent_id, kind, **arguments)
    world.run(100)
    outcomes = [world.answers()[f"i{number}"].outcome for number in range(1, 9)]
    assert outcomes == [DONE, REFUSED, DONE, DONE, DONE, REFUSED, REFUSED, DONE]
    assert world.state.bundles.tenants == {"acme": Tenant("acme", ("asia", "us"))}


def test_the_log_is_verified_audited_and_followed_across_terms(world: World) -> None:
    """The name of the cluster is in the log, so whoever repeats a decision needs no configuration."""
    assert set_tenant(world, "acme", "us").outcome is DONE
    assert create(world, "acme/a").outcome is REFUSED
    world.take_over(500)
    assert world.state.cluster.name == "eu"
    assert create(world, "acme/a").outcome is REFUSED
    assert complaints_of(world.decisions) == []
    _, audited = RecordedLog(world).audit()
    assert [each.differences for each in audited] == [()] * len(world.decisions)


def test_a_term_that_began_at_the_first_level_does_not_know_its_cluster() -> None:
    """Once the level is raised tenants can be set, and their namespaces created by clusters' names; the rest waits."""
    world = World(first_feature_level=1)
    world.admit("n1")
    assert "needs feature level 2" in set_tenant(world, "acme", "eu").detail
    assert create(world, "late/a").outcome is DONE
    world.ask("raise_feature_level", level="2")
    assert set_tenant(world, "acme", "eu").outcome is DONE
    assert create(world, "acme/eu/a").outcome is DONE
    assert create(world, "acme/a").detail == (
        "namespace 'acme/a' would be in this cluster, whose name the log holds from the next term on: "
        "tenant 'acme' allows cluster eu"
    )
    assert "in this cluster, whose name" in set_tenant(world, "late", "eu").detail
    world.take_over(500)
    assert create(world, "acme/a").outcome is DONE
    assert set_tenant(world, "late", "eu").outcome is DONE


@pytest.mark.parametrize(("level", "recorded"), [(1, ""), (2, "eu")])
def test_term_records_the_cluster_from_the_level_on_that_has_it(level: int, recorded: str) -> None:
    """At the first level older readers could not read it."""
    world = World(first_feature_level=level)
    sealed = open_term(world.state, world.observations, Term(2), "c2", "test", Opening(cluster="eu"))
    opened = next(event for event in sealed.decision.events if isinstance(event, TermOpened))
    assert (opened.cluster, sealed.state.cluster.name) == (recorded, recorded)


def test_deleting_a_tenant_that_is_not_registered_is_no_event(world: World) -> None:
    """A log that holds one was altered, or a defect wrote it."""
    with pytest.raises(InvariantViolationError, match="tenant 'acme' is not registered"):
        apply(world.state, TenantDeleted("acme"))


def step(world: World, *events: Event) -> None:
    """Check a step of these events, past the code that decides."""
    after = world.state
    for event in events:
        after = apply(after, event)
    after = replace(after, seq=after.seq + 1)  # type: ignore[arg-type]  # the number after
    check_step(world.state, replace(world.decisions[-1], events=events), after)


def test_invariants_find_what_the_rules_prevent(world: World) -> None:
    """A step that sets, deletes or creates past the rules; a state with such a namespace or with unsorted clusters."""
    for name in ("acme/a", "acme/us/b"):
        create(world, name)
    (created,) = (event for event in world.decisions[-1].events if isinstance(event, NamespaceCreated))
    both = Tenant("acme", ("eu", "us"))
    step(world, TenantSet(both))
    for events, sentence in (
        ((TenantSet(Tenant("acme", ("us",))),), "namespace 'acme/a' is in a cluster that tenant 'acme' does not allow"),
        ((TenantSet(Tenant("acme", ("eu",))),), "namespace 'acme/us/b' is in a cluster that tenant 'acme' does not"),
        ((TenantSet(both), TenantDeleted("acme")), "tenant 'acme' is deleted and has namespace 'acme/"),
    ):
        with pytest.raises(InvariantViolationError, match=sentence):
            step(world, *events)
    other = replace(created.namespace, name="idle/x")
    set_tenant(world, "idle", "us")
    with pytest.raises(InvariantViolationError, match="'idle/x' is in a cluster that tenant 'idle' does not allow"):
        step(world, replace(created, namespace=other, bundles=()))
    for tenant, sentence in (
        (Tenant("acme", ("eu",)), "namespace 'acme/us/b' is in a cluster"),
        (Tenant("acme", ("us", "eu")), "its clusters are not sorted"),
    ):
        with pytest.raises(InvariantViolationError, match=sentence):
            check(apply(world.state, TenantSet(tenant)))


def test_a_log_under_another_name_is_not_broken(world: World) -> None:
    """A copy of it may have been restored for another cluster: its tenants are set anew there."""
    create(world, "acme/a")
    set_tenant(world, "acme", "eu")
    world.cluster_name = "copy"
    world.take_over(500)
    check(world.state)
    assert world.state.cluster.name == "copy"
    assert create(world, "acme/b").outcome is REFUSED
    assert set_tenant(world, "acme", "copy").outcome is DONE
    assert create(world, "acme/b").outcome is DONE
