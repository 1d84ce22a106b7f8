"""Draw ``acls.md`` from the rights file: ``python docs/reference/generate_acls.py``.

A test compares the page with what this script would write.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from controlplane.bootstrap.access_roles import access_roles  # noqa: E402 - the checkout is on the path only now
from controlplane.kafka_rules.acls_file import AccessRole, ResourceKind  # noqa: E402 - as above

PAGE = Path(__file__).with_name("acls.md")
_HEAD = """\
# Access roles

<!-- Drawn by docs/reference/generate_acls.py from infra/kafka/acls.toml: change that, not this page. -->

The least rights in Kafka of a principal of each role. Names begin with the cluster's name: `demo.heartbeats`, and the
transactional id `demo.leader`. Topics that begin with `__` are Kafka's own.
`controlplane acls apply --principal ROLE=User:NAME` creates the entries that are missing; `controlplane acls show`
prints them for one cluster. In Kafka `read` and `write` include `describe`. How to use them is described in
[secure a cluster](../how-to/secure-a-cluster.md).

No role needs a right on a consumer group or on the Kafka cluster. Brokers older than 3.0 require
`IDEMPOTENT_WRITE` on the cluster for every writer.

| | {names} |
|---|{rules}|
"""
_ORDER = ("create", "describe", "describe_configs", "read", "write")


def page() -> str:
    """The whole page."""
    roles = access_roles()
    head = _HEAD.format(names=" | ".join(role.name for role in roles), rules="|".join("---" for _ in roles))
    things = dict.fromkeys((right.kind, right.name) for role in roles for right in role.rights)
    return head + "".join(_overview_row(roles, *thing) for thing in things) + "".join(map(_section, roles))


def _overview_row(roles: tuple[AccessRole, ...], kind: ResourceKind, name: str) -> str:
    cells = []
    for role in roles:
        has = {right.operation.value for right in role.rights if (right.kind, right.name) == (kind, name)}
        cells.append(", ".join(operation for operation in _ORDER if operation in has))
    thing = f"`{name}`" if kind is ResourceKind.TOPIC else f"{kind.value} `{name}`"
    return f"| {thing} | {' | '.join(cells)} |\n"


def _section(role: AccessRole) -> str:
    by_why: dict[str, list[str]] = {}
    for right in role.rights:
        by_why.setdefault(right.why, []).append(f"{right.operation.value} `{right.name}`")
    rows = "".join(f"| {', '.join(rights)} | {why} |\n" for why, rights in by_why.items())
    return f"\n## {role.name}\n\n{role.why}\n\n| may | why |\n|---|---|\n{rows}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
