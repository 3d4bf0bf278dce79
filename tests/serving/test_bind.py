from __future__ import annotations

import pytest

from advisor.errors import Refused
from serving.bind import check_bind, server_config
from tests.serving.http import an_app


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_may_be_bound(host):
    assert check_bind(host) == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.4", "2001:db8::1", "cluster.example", "", "127.0.0.1.evil"])
def test_any_other_address_is_refused_with_a_remedy(host):
    with pytest.raises(Refused, match="proxy that authenticates") as refused:
        check_bind(host)

    assert refused.value.field == "host"


def test_the_server_itself_refuses_what_the_check_refuses():
    with pytest.raises(Refused):
        server_config(an_app(), "0.0.0.0", 8080)
