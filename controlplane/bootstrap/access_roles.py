"""The access roles of a cluster, read from the file that ships with the package."""

from controlplane.kafka_rules.acls_file import AccessRole, parse_roles
from controlplane.resources import resource_path

_ACLS_FILE = "infra/kafka/acls.toml"


def access_roles() -> tuple[AccessRole, ...]:
    """The roles in ``infra/kafka/acls.toml``.

    Raises:
        ConfigurationError: the file contains something invalid; the message names the place.
    """
    return parse_roles(resource_path(_ACLS_FILE).read_text(encoding="utf-8"), _ACLS_FILE)
