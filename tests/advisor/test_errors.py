"""What a refusal says: every part once, and every sentence closed once."""

from __future__ import annotations

import pytest

from advisor.errors import Refused, sentences


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
