"""What a refusal says: every part once, and every sentence closed once."""

from __future__ import annotations

import pytest

from advisor.errors import Refused, limit_and_remedy, sentences


@pytest.mark.parametrize(
    "limit, remedy, said",
    [
        ("it is a count", "Write 16.", "it is a count. Write 16."),
        ("it cannot be listened on; is it taken?", "Choose another port.", "is it taken? Choose another port."),
        ("no configuration in the file.", "Check the path.", "in the file. Check the path."),
        ("it ended early..", "Check the path", "it ended early. Check the path."),
        ("the driver says: ", "Install it.", "the driver says. Install it."),
        ("it lacks jobs", "Ingest some: gsa ingest trace ...", "it lacks jobs. Ingest some: gsa ingest trace ..."),
        ("it is wrong", "", "it is wrong."),
    ],
)
def test_every_sentence_of_a_refusal_is_closed_once(limit: str, remedy: str, said: str) -> None:
    assert str(Refused("--port", 80, limit, remedy)) == f"--port: 80 is refused; {sentences(limit, remedy)}"
    assert sentences(limit, remedy).endswith(said)


def test_what_was_not_given_is_not_called_refused() -> None:
    error = Refused("mapping", None, "format table needs a mapping", "Name it with --mapping.")

    assert str(error) == "mapping: nothing was given; format table needs a mapping. Name it with --mapping."


@pytest.mark.parametrize(
    "kind, context, limit",
    [
        ("missing", {}, "it is required"),
        ("extra_forbidden", {}, "nothing of that name is known here"),
        ("greater_than_equal", {"ge": 0.001}, "it must be at least 0.001"),
        ("less_than", {"lt": 7}, "it must be below 7"),
        ("greater_than", {"gt": 0.0}, "it must be above 0"),
        ("too_short", {"min_length": 1}, "it must have at least 1 entry"),
        ("too_long", {"max_length": 9}, "it must have at most 9 entries"),
        ("string_too_short", {"min_length": 1}, "it must have at least 1 character"),
        ("string_too_long", {"max_length": 253}, "it must have at most 253 characters"),
        ("enum", {"expected": "'a' or 'b'"}, "it must be 'a' or 'b'"),
        ("int_from_float", {}, "it must be a whole number"),
        ("string_type", {}, "it must be text"),
        ("timezone_aware", {}, "it must be a time with an offset, such as 2026-03-02T12:00:00Z"),
        ("value_error", {}, "round up"),
        ("something_new", {}, "Value error, round up"),
    ],
)
def test_what_a_schema_finds_is_said_in_words_of_ours(kind: str, context: dict[str, object], limit: str) -> None:
    said, remedy = limit_and_remedy({"type": kind, "msg": "Value error, round up", "ctx": context})

    assert said == limit
    assert remedy.endswith(".")
