"""The rights of each user by ``infra/redis/users.conf``."""

import shlex

from controlplane.resources import resource_path

RULES = {
    words[1]: words[2:]
    for line in resource_path("infra/redis/users.conf").read_text("utf-8").splitlines()
    if (words := shlex.split(line, comments=True))[:1] == ["user"]
}
"""Rules by user, for the cluster ``local``, as ``ACL SETUSER`` takes them; the last one of the same kind counts."""


def rules_of(user: str, cluster: str) -> list[str]:
    """A user's rules for another cluster."""
    return [rule.replace("{local}", f"{{{cluster}}}") for rule in RULES[user]]
