"""Where the server may listen, and how the HTTP server itself is set up."""

from __future__ import annotations

import ipaddress

import uvicorn
from fastapi import FastAPI

from advisor.errors import Refused

__all__ = ["check_bind", "server_config"]

_LARGEST_BACKLOG = 512


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
