"""The page on securing a cluster: its commands work as they stand there, on a broker that asks for logins."""

import subprocess
from pathlib import Path

import pytest

from controlplane.embedded.valkey import EmbeddedValkey
from streaming.java_client import java_client_settings
from tests.helpers.readme import ROOT, blocks, console_commands
from tests.helpers.roles_at_work import DEADLINE_S, SecuredCluster, running_controller
from tests.helpers.secured_kafka import SUPER_USER, SecuredKafka

PAGE = ROOT / "docs" / "how-to" / "secure-a-cluster.md"


def settings_in(text: str) -> dict[str, str]:
    """The settings of a file of lines ``KEY=VALUE``."""
    return dict(line.split("=", 1) for line in text.splitlines())


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_page_works_as_it_stands(
    secured_kafka: SecuredKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> None:
    """Each command succeeds, in the order of the page, under the login of a super user; a controller answers."""
    servers, above = secured_kafka.tls_password_servers, secured_kafka.tls_login(SUPER_USER)
    cluster = SecuredCluster(cluster_name, servers, above, valkey_server.redis_url, tmp_path)
    cluster.create_topics()
    login = tmp_path / "login"
    login.write_text("".join(f"{name}={value}\n" for name, value in above.items()), encoding="utf-8")
    ran = []
    with running_controller(cluster, login) as refused:
        for words in console_commands("controlplane", PAGE):
            done = subprocess.run(
                [*cluster.command_line(login), *words, *(("--wait", "60") if "set" in words else ())],
                env=cluster.environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=2 * DEADLINE_S,
            )
            assert done.returncode == 0, (words, done.stdout, done.stderr, refused())
            ran.append((words, done.stdout))
    assert "by ada: done: intent_rights" in ran[-1][1]


def test_login_of_the_page_is_one_for_every_client() -> None:
    """Names that a client does not know would be found out only in production."""
    login = settings_in(blocks(PAGE)["login"])
    settings = java_client_settings(login)
    assert settings["sasl.jaas.config"].startswith("org.apache.kafka.common.security.scram.ScramLoginModule required")
    assert login.keys() == {"security.protocol", "sasl.mechanism", "sasl.username", "sasl.password", "ssl.ca.location"}
