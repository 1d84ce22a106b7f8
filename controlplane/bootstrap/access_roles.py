"""The access roles of a cluster, as the file that ships with the package describes them."""

from controlplane.codec.acls_file import AccessRole, parse_roles
from controlplane.resources import resource_path

_ACLS_FILE = "infra/kafka/acls.toml"


def access_roles() -> tuple[AccessRole, ...]:
    """What ``infra/kafka/acls.toml`` says.

    Raises:
        ConfigurationError: the file says something impossible; the message names the place.
    """
    return parse_roles(resource_path(_ACLS_FILE).read_text(encoding="utf-8"), _ACLS_FILE)
