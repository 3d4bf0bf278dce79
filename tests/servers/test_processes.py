from __future__ import annotations

import sys

import pytest

from tests.servers.processes import ServerProcess, binary


def test_a_missing_server_is_skipped_but_fails_where_it_was_promised(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install prometheus"):
        binary("promtool", "prometheus")

    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="apt-get install prometheus"):
        binary("promtool", "prometheus")


def test_a_server_that_dies_at_once_is_told_with_its_log(tmp_path):
    def command(_: int) -> list[str]:
        return [sys.executable, "-c", "raise SystemExit('no such flag')"]

    server = ServerProcess(command, "/", tmp_path / "log")

    with pytest.raises(RuntimeError, match="no such flag"):
        server.start()
    assert not server.running


def test_a_server_serves_once_started_may_be_killed_and_comes_back_at_its_port(tmp_path):
    def command(port: int) -> list[str]:
        words = ["-m", "http.server", "--bind", "127.0.0.1", "--directory", str(tmp_path)]
        return [sys.executable, *words, str(port)]

    server = ServerProcess(command, "/", tmp_path / "log")
    server.start()
    before = server.url
    try:
        server.stop(at_once=True)
        assert not server.running
        server.start()
        assert (server.running, server.url) == (True, before)
    finally:
        server.stop()
