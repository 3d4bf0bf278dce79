from __future__ import annotations

import socket

import pytest

from advisor.errors import Refused
from serving.bind import check_bind, listening, server_config
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


def test_an_address_is_held_against_a_second_server_from_the_moment_it_is_taken():
    with listening("127.0.0.1", 0) as (first,):
        port = first.getsockname()[1]
        told = pytest.raises(Refused, match=rf"127\.0\.0\.1:{port}.*taken by another program")
        with told as refused, listening("127.0.0.1", port):
            pass
    with listening("127.0.0.1", port) as (again,):
        assert again.getsockname()[1] == port
    assert refused.value.field == "--port"
    assert "rrno" not in str(refused.value)


def test_localhost_is_listened_on_by_every_address_it_has_here():
    with listening("localhost", 0) as sockets:
        reached = [one.getsockname()[:2] for one in sockets]
        for address in reached:
            socket.create_connection(address, timeout=5).close()

    assert "127.0.0.1" in {host for host, _ in reached}


def test_no_other_address_is_listened_on():
    with pytest.raises(Refused, match="loopback"), listening("0.0.0.0", 0):
        pass
