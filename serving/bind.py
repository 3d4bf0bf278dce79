"""Where the server may listen, how it takes the address, and how the HTTP server itself is set up."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import uvicorn
from fastapi import FastAPI

from advisor.errors import Refused

__all__ = ["check_bind", "listening", "server_config", "url_of"]

_LARGEST_BACKLOG = 512
_NOT_HERE = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}


def check_bind(host: str) -> str:
    """``host`` if only this machine can reach it.

    Raises:
        Refused: any other address, since nothing here asks who is calling.
    """
    if host == "localhost":
        return host
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise Refused(
            "host",
            host,
            "without authentication only a loopback address may be bound",
            "Use 127.0.0.1, and a proxy that authenticates in front of it.",
        )
    return host


def url_of(host: str, port: int) -> str:
    """What to open in a browser.

    >>> url_of("127.0.0.1", 8080), url_of("::1", 8080)
    ('http://127.0.0.1:8080/', 'http://[::1]:8080/')
    """
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


@contextmanager
def listening(host: str, port: int) -> Iterator[tuple[socket.socket, ...]]:
    """Sockets that listen on every address of ``host``, from now to the end of the block.

    Whoever connects before they are served waits. To listen, rather than only bind, is what keeps a second
    server off the port for as long as the first one still prepares.

    Raises:
        Refused: ``host`` is not a loopback address, or the port cannot be listened on.
    """
    addresses = _addresses(check_bind(host), port)
    with ExitStack() as stack:
        sockets = []
        for family, address in addresses:
            try:
                one = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
                _listen(one, family, address)
            except OSError as error:
                # A machine may know localhost by an address that it does not have.
                if error.errno in _NOT_HERE and len(addresses) > 1:
                    continue
                raise _unusable(host, port, error) from error
            sockets.append(one)
        if not sockets:
            raise Refused("host", host, "this machine has no such address", "Use 127.0.0.1.")
        yield tuple(sockets)


def server_config(app: FastAPI, host: str, port: int) -> uvicorn.Config:
    """The HTTP server around ``app``: fast loop and parser, graceful stop.

    Raises:
        Refused: ``host`` is not a loopback address.
    """
    return uvicorn.Config(
        app,
        host=check_bind(host),
        port=port,
        http="httptools",
        loop="uvloop",
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        backlog=_LARGEST_BACKLOG,
        timeout_graceful_shutdown=10,
    )


def _addresses(host: str, port: int) -> Sequence[tuple[int, tuple[object, ...]]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise Refused("host", host, f"it has no address: {error.strerror}", "Use 127.0.0.1.") from error
    return list(dict.fromkeys((int(family), tuple(address)) for family, _, _, _, address in found))


def _listen(one: socket.socket, family: int, address: tuple[object, ...]) -> None:
    # Else a server stopped a moment ago would keep the port for a minute.
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    one.bind(address)
    one.listen(_LARGEST_BACKLOG)


def _unusable(host: str, port: int, error: OSError) -> Refused:
    if error.errno == errno.EADDRINUSE:
        limit, remedy = "the port is taken by another program", "Choose another with --port, or stop that program."
    else:
        limit, remedy = f"it cannot be listened on: {error.strerror}", "Choose another port with --port."
    return Refused("--port", url_of(host, port), limit, remedy)
