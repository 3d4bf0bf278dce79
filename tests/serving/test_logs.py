"""What a person sees at a terminal, and what a collector of logs is given."""

from __future__ import annotations

import io
import json
import sys

import pytest
import structlog

from serving.logs import set_up_logs


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Dear:
    """A local variable that is dear to print: a table of jobs, say."""

    printed = 0

    def __repr__(self) -> str:
        Dear.printed += 1
        return "Dear()"


def fail() -> None:
    table = Dear()
    raise KeyError(f"surprise in {id(table)}")


def logged_failure() -> None:
    try:
        fail()
    except KeyError:
        structlog.get_logger().exception("cycle_broke")


def test_a_traceback_at_a_terminal_prints_no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pretty ones print every local of every frame, tables of jobs among them."""
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    set_up_logs()

    logged_failure()

    assert "cycle_broke" in terminal.getvalue()
    assert "Traceback (most recent call last):" in terminal.getvalue()
    assert "KeyError" in terminal.getvalue()
    assert Dear.printed == 0


def test_a_collector_is_given_one_json_document_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", collected := io.StringIO())
    set_up_logs()

    logged_failure()

    (line,) = collected.getvalue().splitlines()
    event = json.loads(line)
    assert event["event"] == "cycle_broke"
    assert "KeyError" in event["exception"]


@pytest.mark.parametrize(
    "stream, routine, told", [(io.StringIO, True, True), (io.StringIO, False, False), (Terminal, True, False)]
)
def test_what_goes_as_always_is_told_only_to_who_collects_it(
    stream: type[io.StringIO], routine: bool, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", written := stream())
    set_up_logs(routine=routine)

    structlog.get_logger().debug("cycle_finished")
    structlog.get_logger().warning("champion_passed_over")

    assert ("cycle_finished" in written.getvalue()) is told
    assert "champion_passed_over" in written.getvalue()


def test_events_go_to_whatever_standard_error_is_when_they_are_told(capsys, monkeypatch):
    """A stream that was closed or replaced since the set-up must not take the program down with it."""
    gone = io.StringIO()
    monkeypatch.setattr(sys, "stderr", gone)
    set_up_logs()
    gone.close()
    monkeypatch.undo()
    structlog.get_logger("test").warning("told_later")
    assert "told_later" in capsys.readouterr().err
