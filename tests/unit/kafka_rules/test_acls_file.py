"""The rights file: what it says of our topics, and how mistakes in it are named."""

import pytest

from controlplane.bootstrap.access_roles import access_roles
from controlplane.bootstrap.topics import topic_specs
from controlplane.config import DECISIONS, INTENTS, ROUTING_TABLE, ClusterConfig
from controlplane.errors import ConfigurationError
from controlplane.kafka_rules.acls_file import Grant, Operation, ResourceKind, grants_of, parse_roles
from controlplane.kafka_rules.promises import INTERNAL_TOPICS

ROLES = {role.name: role for role in access_roles()}
GOOD = """
format = 1
[roles.reader]
why = "It reads."
[[roles.reader.rights]]
topics = ["a", "b"]
operations = ["read", "describe"]
why = "To read."
"""


def writers_of(topic: str) -> set[str]:
    """The roles that may write to a topic."""
    return {
        role.name
        for role in ROLES.values()
        for right in role.rights
        if (right.kind, right.name, right.operation) == (ResourceKind.TOPIC, topic, Operation.WRITE)
    }


def test_one_role_decides_and_one_asks() -> None:
    """Whoever else could write these would decide, route or ask in somebody's place."""
    assert writers_of(DECISIONS) == writers_of(ROUTING_TABLE) == {"controller"}
    assert writers_of(INTENTS) == {"operator"}
    transactional = [
        (role.name, right.full_name("demo"))
        for role in ROLES.values()
        for right in role.rights
        if right.kind is ResourceKind.TRANSACTIONAL_ID
    ]
    assert transactional == [("controller", ClusterConfig("demo").transactional_id)]


def test_rights_are_about_topics_that_there_are() -> None:
    """A misspelt topic would be a right on nothing; each topic is written by somebody."""
    topics = {spec.name for spec in topic_specs()}
    named = {right.name for role in ROLES.values() for right in role.rights if right.kind is ResourceKind.TOPIC}
    assert named == topics.union(INTERNAL_TOPICS)
    assert [topic for topic in sorted(topics) if not writers_of(topic)] == []


def test_topics_of_kafkas_own_may_only_be_looked_at() -> None:
    """They are every cluster's: a client that writes to them decides which transactions of all are committed."""
    rights = {
        (role.name, right.full_name("demo"), right.operation)
        for role in ROLES.values()
        for right in role.rights
        if right.name in INTERNAL_TOPICS
    }
    assert rights == {
        (role, topic, operation)
        for role in ("controller", "administrator")
        for topic in ("__transaction_state", "__consumer_offsets")
        for operation in (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)
    }


def test_a_right_for_each_topic_and_operation() -> None:
    """In the file's order."""
    (role,) = parse_roles(GOOD, "acls.toml")
    named = [(right.name, right.operation.value) for right in role.rights]
    assert named == [("a", "read"), ("a", "describe"), ("b", "read"), ("b", "describe")]


@pytest.mark.parametrize(
    ("former", "wrong", "sentence"),
    [
        ("format = 1", "format = 2", "acls.toml has format 2; this version reads format 1"),
        ("format = 1", "format =", "acls.toml is not a TOML file"),
        ('why = "It reads."', 'wy = "It reads."', "role reader: 'wy' is unknown; known are rights, why"),
        ('why = "It reads."', 'why = ""', "role reader: why is ''; write a sentence"),
        ('topics = ["a", "b"]', 'topics = "a"', "role reader, right 1: topics is 'a'; write a list of names"),
        ('topics = ["a", "b"]', 'groups = ["a"]', "role reader, right 1: 'groups' is unknown"),
        ('topics = ["a", "b"]', "", "role reader, right 1: write one of topics, transactional_ids"),
        ('topics = ["a", "b"]', 'topics = ["a", "a"]', "role reader: read of topic a is listed twice"),
        ('"read", "describe"', '"fly"', "role reader, right 1: operation 'fly' is unknown; known are create"),
        ("[[roles.reader.rights]]", "[[roles.reader.right]]", "role reader: 'right' is unknown"),
    ],
)
def test_mistakes_are_named_with_their_place(former: str, wrong: str, sentence: str) -> None:
    """The file is edited by hand."""
    assert former in GOOD
    with pytest.raises(ConfigurationError) as refused:
        parse_roles(GOOD.replace(former, wrong, 1), "acls.toml")
    assert sentence in str(refused.value)


def test_who_gets_which_role() -> None:
    """Several principals may have a role, and one several roles; the same said twice is said once."""
    roles = tuple(ROLES.values())
    named = [("node", "User:n1"), ("node", "User:CN=n2,OU=x"), ("reader", "User:n1"), ("node", "User:n1")]
    assert grants_of(roles, named) == (
        Grant(ROLES["node"], "User:n1"),
        Grant(ROLES["node"], "User:CN=n2,OU=x"),
        Grant(ROLES["reader"], "User:n1"),
    )


@pytest.mark.parametrize(
    ("role", "principal", "sentence"),
    [
        ("nodes", "User:n1", "there is no role 'nodes'; the roles are controller, node"),
        ("node", "n1", "role node: 'n1' is not a principal of Kafka; write User:NAME"),
        ("node", "User:", "role node: 'User:' is not a principal of Kafka; write User:NAME"),
        ("node", "User:*", r"role node: User:* is every user; name each principal that has the role"),
    ],
)
def test_whom_no_role_can_be_given(role: str, principal: str, sentence: str) -> None:
    """An entry for a name that nobody bears would help nobody, one for everybody would help too many."""
    with pytest.raises(ConfigurationError) as refused:
        grants_of(tuple(ROLES.values()), [(role, principal)])
    assert sentence in str(refused.value)
