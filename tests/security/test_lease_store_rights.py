"""The lease store with logins, least rights and TLS."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
import redis

from controlplane.adapters.redis_lease import RedisLeaseStore
from controlplane.adapters.redis_lock import RedisLockStore
from controlplane.config import ClusterConfig
from controlplane.core.values.identifiers import Term
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.errors import ConfigurationError, LeaseStoreUnavailableError
from controlplane.ports import LeaseGranted, LeaseHeld, LeaseMissing, LeaseRenewed
from tests.helpers.certificates import Authority
from tests.helpers.redis_users import RULES
from tests.helpers.tls_front import TlsFront

CLUSTER = ClusterConfig("local")
LONG_MS = 600_000
PASSWORD = "p@ss/w#rd of the lease"  # noqa: S105 - hard characters for an address
CONTROLLER, OPERATOR = "controlplane-controller", "controlplane-operator"
SOFA_CONTROLLER = "controlplane-sofa-controller"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedValkey]:
    """A server of this file's own, whose users and scripts come and go, with the users of the file switched on."""
    with (
        EmbeddedValkey(tmp_path_factory.mktemp("valkey")) as started,
        redis.Redis.from_url(started.redis_url) as admin,
    ):
        for user, rules in RULES.items():
            admin.execute_command("ACL", "SETUSER", user, *rules, "on", f">{PASSWORD}")
        yield started


def url_of(port: int, user: str, scheme: str = "redis", options: str = "", password: str = PASSWORD) -> str:
    """The address with a login, written as addresses want it."""
    return f"{scheme}://{user}:{quote(password, safe='')}@127.0.0.1:{port}/0{options}"


def lead(url: str, cluster: ClusterConfig) -> None:
    """Everything that a controller does with the lease."""
    with closing(RedisLeaseStore(cluster, url, 5_000)) as store:
        _lead(store)


def _lead(store: RedisLeaseStore) -> None:
    granted = store.acquire("a", Term(0), LONG_MS)
    assert isinstance(granted, LeaseGranted)
    assert store.renew("a", granted.term, LONG_MS) == LeaseRenewed(granted.term)
    assert isinstance(store.acquire("b", Term(0), LONG_MS, priority=1), LeaseHeld)
    assert isinstance(store.read(), LeaseHeld)
    store.write_log_id("log")
    assert store.read_log_id() == "log"
    assert store.release("a", granted.term)
    assert store.read() == LeaseMissing()


def lead_as_sofa(url: str, cluster: ClusterConfig) -> None:
    """The same under lease profile ``sofa``."""
    with closing(RedisLockStore(cluster, url, "dc", "lock", 5_000)) as lock:
        assert lock.insert("a", LONG_MS, 0)
        record = lock.read().record
        assert record is not None
        assert lock.renew(record, guarded=False)
        assert lock.force_refresh("a", LONG_MS)
    with closing(RedisLeaseStore(cluster, url, 5_000)) as store:
        store.write_log_id("log")
        assert store.read_log_id() == "log"


def look(url: str, cluster: ClusterConfig) -> None:
    """Everything that ``leader show`` does with it."""
    with closing(RedisLeaseStore(cluster, url, 5_000)) as store:
        store.read()
        store.contenders()
    with closing(RedisLockStore(cluster, url, "dc", "lock", 5_000)) as lock:
        lock.read_all()


Work = Callable[[str, ClusterConfig], object]
WORK: dict[str, Work] = {CONTROLLER: lead, SOFA_CONTROLLER: lead_as_sofa, OPERATOR: look}


def do(url: str, work: Work, cluster: ClusterConfig = CLUSTER) -> None:
    """Do some work on a connection of its own, with scripts that the server has to be told first."""
    work(url, cluster)


@pytest.fixture(autouse=True)
def fresh(server: EmbeddedValkey) -> None:
    """A server that has just been started: it knows no script and no lease."""
    with redis.Redis.from_url(server.redis_url) as admin:
        admin.script_flush()
        admin.delete(*(admin.keys("controlplane:{local}:*") or ["none"]))


@pytest.mark.parametrize("user", WORK)
def test_a_user_does_its_whole_work_with_its_rights(server: EmbeddedValkey, user: str) -> None:
    """The users of the file, as it stands there."""
    do(url_of(server.port, user), WORK[user])


@pytest.mark.parametrize(
    ("user", "right"), [(user, rule) for user, rules in RULES.items() for rule in rules if rule[:1] in "+~"]
)
def test_without_any_one_right_some_work_is_refused(server: EmbeddedValkey, user: str, right: str) -> None:
    """No command and no key is allowed for nothing, and the refusal says what the user has to be allowed."""
    taken = "resetkeys" if right.startswith("~") else right.replace("+", "-", 1)
    with redis.Redis.from_url(server.redis_url) as admin:
        admin.execute_command("ACL", "SETUSER", user, taken)
        try:
            with pytest.raises(ConfigurationError, match=f"denies user '{user}'.*infra/redis/users.conf"):
                do(url_of(server.port, user), WORK[user])
        finally:
            admin.execute_command("ACL", "SETUSER", user, right)


def test_who_only_looks_changes_nothing(server: EmbeddedValkey) -> None:
    """Neither a lease of either profile nor the log's name; and nobody reaches another cluster's keys."""
    lead_as_sofa(url_of(server.port, SOFA_CONTROLLER), CLUSTER)
    looking = url_of(server.port, OPERATOR)
    with pytest.raises(ConfigurationError, match="denies"):
        do(looking, lambda url, cluster: RedisLeaseStore(cluster, url, 5_000).acquire("b", Term(0), LONG_MS))
    with pytest.raises(ConfigurationError, match="denies"):
        do(looking, lambda url, cluster: RedisLeaseStore(cluster, url, 5_000).write_log_id("other"))
    with pytest.raises(ConfigurationError, match="denies"):
        do(looking, lambda url, cluster: RedisLockStore(cluster, url, "dc", "lock", 5_000).force_refresh("a", 1))
    with pytest.raises(ConfigurationError, match="denies"):
        do(url_of(server.port, CONTROLLER), look, ClusterConfig("other"))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Whom clients are told to trust."""
    return Authority(tmp_path / "certificates")


def test_tls_with_a_login(server: EmbeddedValkey, authority: Authority) -> None:
    """``rediss`` with the authority's certificate in the address; the embedded server has no TLS, so a front has."""
    with TlsFront(server.port, authority.sign("lease-store")) as front:
        do(url_of(front.port, CONTROLLER, "rediss", f"?ssl_ca_certs={authority.certificate}"), lead)


def test_a_server_that_nobody_vouches_for_is_refused(
    server: EmbeddedValkey, authority: Authority, tmp_path: Path
) -> None:
    """Without the authority, and with another one: no password goes to whoever answers."""
    other = Authority(tmp_path / "other")
    with TlsFront(server.port, authority.sign("lease-store")) as front:
        for options in ("", f"?ssl_ca_certs={other.certificate}"):
            with pytest.raises(LeaseStoreUnavailableError, match="certificate verify failed") as refused:
                do(url_of(front.port, CONTROLLER, "rediss", options), look)
            assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:very#secret@127.0.0.1:6379/0",
        "redis://:12345#very-secret@127.0.0.1:6379/0",
        "redis://user:very/secret@127.0.0.1:6379/0",
        "very-secret",
    ],
)
def test_an_address_that_is_none_is_not_repeated(url: str) -> None:
    """A password with characters that addresses use for other things: what is left of it must not be shown."""
    with pytest.raises(ConfigurationError, match="write it as") as refused:
        RedisLeaseStore(CLUSTER, url, 100)
    assert not re.search("secret|very|12345", f"{refused.value} {refused.value.__cause__}")
