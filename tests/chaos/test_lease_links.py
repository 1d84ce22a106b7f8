"""Each process reaches the lease store over a link of its own."""

import pytest
import redis

from controlplane.embedded.valkey import EmbeddedValkey
from tests.chaos.lease_links import LeaseLinks
from tests.chaos.proxy import LinkMode


def test_a_link_is_cut_for_its_process_alone(valkey_server: EmbeddedValkey) -> None:
    """The other one still reaches the store, and the first again when its link is open."""
    with LeaseLinks(valkey_server, ["c1", "c2"]) as links:
        first, second = (redis.Redis.from_url(links.url_of(name)) for name in ("c1", "c2"))
        with first, second:
            assert first.ping()
            links.set("c1", LinkMode.CUT)
            with pytest.raises(redis.ConnectionError):
                first.ping()
            assert second.ping()
            links.set("c1", LinkMode.OPEN)
            assert first.ping()
