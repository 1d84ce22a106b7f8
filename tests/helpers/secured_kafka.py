"""A real Kafka with its authorizer on: logins by password, with and without TLS, and by certificate."""

from collections.abc import Sequence
from pathlib import Path

from confluent_kafka.admin import AclBinding, AclBindingFilter, AdminClient

from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.server import HOST, free_port
from tests.helpers.certificates import Authority

SUPER_USER = "super"
USERS = (SUPER_USER, "controller", "node", "reader", "operator", "pipeline", "administrator", "stranger")
"""Each may log in with :func:`password_of`; only the first may do anything without being granted it."""


def tls_login_of(user: str, authority: Authority, mechanism: str = "PLAIN") -> dict[str, str]:
    """The security settings of a user who logs in with a password under TLS."""
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password_of(user),
        "ssl.ca.location": str(authority.certificate),
    }


def password_of(user: str) -> str:
    """The password of this user, long enough to be found in any output."""
    return f"open-sesame-of-{user}"


class SecuredKafka(EmbeddedKafka):
    """One broker for a whole session of tests. Each test needs a cluster name of its own."""

    def __init__(self, data_dir: Path, authority: Authority) -> None:
        """Choose the ports; certificates come from the authority."""
        super().__init__(data_dir)
        self.authority = authority
        self._ports = {name: free_port() for name in ("SASL", "SASLTLS", "TLS")}

    @property
    def password_servers(self) -> str:
        """Where passwords are taken, without TLS."""
        return f"{HOST}:{self._ports['SASL']}"

    @property
    def tls_password_servers(self) -> str:
        """Where passwords are taken, under TLS."""
        return f"{HOST}:{self._ports['SASLTLS']}"

    @property
    def tls_servers(self) -> str:
        """Where a client's certificate is asked for."""
        return f"{HOST}:{self._ports['TLS']}"

    def login(self, user: str) -> dict[str, str]:
        """The security settings of a user at :attr:`password_servers`."""
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": password_of(user),
        }

    def tls_login(self, user: str, mechanism: str = "PLAIN") -> dict[str, str]:
        """The security settings of a user at :attr:`tls_password_servers`."""
        return tls_login_of(user, self.authority, mechanism)

    def take(self, binding: AclBinding) -> None:
        """Take one access control entry away."""
        entry = AclBindingFilter(
            binding.restype,
            binding.name,
            binding.resource_pattern_type,
            binding.principal,
            binding.host,
            binding.operation,
            binding.permission_type,
        )
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        assert [len(taken.result(20)) for taken in admin.delete_acls([entry]).values()] == [1]

    def _prepare(self) -> Sequence[str]:
        command = super()._prepare()
        settings_file = self.data_dir / "server.properties"
        lines = settings_file.read_text(encoding="utf-8").splitlines()
        former = dict(line.split("=", 1) for line in lines if "=" in line)
        ours = ",".join(f"{name}://{HOST}:{port}" for name, port in self._ports.items())
        server = self.authority.sign("broker").both()
        settings = {
            # The listener without a login stays for the broker itself and for the tests' own preparations.
            "listeners": f"{former['listeners']},{ours}",
            "advertised.listeners": f"{former['advertised.listeners']},{ours}",
            "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "SASL:SASL_PLAINTEXT,SASLTLS:SASL_SSL,TLS:SSL",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:ANONYMOUS;User:{SUPER_USER}",
            "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": PASSWORDS,
            "listener.name.sasltls.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasltls.plain.sasl.jaas.config": PASSWORDS,
            "listener.name.sasltls.scram-sha-256.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
            "listener.name.tls.ssl.client.auth": "required",
        }
        for listener in ("sasltls", "tls"):
            prefix = f"listener.name.{listener}.ssl"
            settings |= {f"{prefix}.keystore.type": "PEM", f"{prefix}.keystore.location": str(server)}
            settings |= {
                f"{prefix}.truststore.type": "PEM",
                f"{prefix}.truststore.location": str(self.authority.certificate),
            }
        # The last line of a setting in such a file counts.
        added = "".join(f"{name}={value}\n" for name, value in settings.items())
        settings_file.write_text("\n".join([*lines, added]), encoding="utf-8")
        return command


_MODULES = "org.apache.kafka.common.security"
PASSWORDS = (
    f"{_MODULES}.plain.PlainLoginModule required "
    + " ".join(f'user_{user}="{password_of(user)}"' for user in USERS)
    + ";"
)
"""What a listener with logins by password is told: all users."""
