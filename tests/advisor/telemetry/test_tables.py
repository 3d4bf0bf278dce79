"""Files as rows of text, whatever kind they are."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advisor.domain.ingest import Rejection
from advisor.errors import Refused
from advisor.telemetry.tables import TableFile
from advisor.telemetry.tally import RejectionTally

TEXT = "a,b,c\n1,x,2\n3,y,4\n"


def rows_of(path, columns=("a", "c")):
    return TableFile(path).read(columns, RejectionTally()).rows


def test_csv_gzip_and_parquet_say_the_same(tmp_path):
    (tmp_path / "t.csv").write_text(TEXT)
    (tmp_path / "named-oddly").write_bytes(gzip.compress(TEXT.encode()))
    pq.write_table(pa.table({"a": [1, 3], "b": ["x", "y"], "c": [2, 4]}), tmp_path / "t.parquet")
    for name in ("t.csv", "named-oddly", "t.parquet"):
        assert TableFile(tmp_path / name).header() == ("a", "b", "c")
        assert rows_of(tmp_path / name) == [(1, ["1", "2"]), (2, ["3", "4"])]


def test_a_byte_order_mark_windows_lines_blanks_and_quotes_do_no_harm(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeff a ,b,"c"\r\n1,"x, y",2\r\n\r\n3,"two\r\nlines",4\r\n'.encode())
    assert TableFile(path).header() == ("a", "b", "c")
    assert rows_of(path) == [(1, ["1", "2"]), (3, ["3", "4"])]


def test_rows_that_cannot_be_split_are_counted_and_passed_over(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b,c\n1,x,2\n1,x\n1,2,3,4\n5,caf\xe9\0,6\n" + b'"' + b"x" * 140_000 + b'"\n7,z,8\n')
    tally = RejectionTally()
    rows = TableFile(path).read(("a", "b"), tally).rows
    assert [cells for _, cells in rows] == [["1", "x"], ["5", "caf\ufffd"], ["7", "z"]]
    wide, unreadable = tally.rejections()
    assert wide == Rejection(
        reason="wrong_column_count", count=2, example="row 2: 2 cells under 3 headings: ['1', 'x']"
    )
    assert (unreadable.reason, unreadable.count) == ("unreadable_row", 1)


def test_parquet_types_become_the_text_they_would_be_in_csv(tmp_path):
    path = tmp_path / "t.parquet"
    moment = datetime(2026, 3, 2, 12, 0, 0, 250_000, tzinfo=UTC)
    table = pa.table(
        {
            "aware": pa.array([moment], pa.timestamp("us", tz="UTC")),
            "naive": pa.array([moment.replace(tzinfo=None)], pa.timestamp("ms")),
            "words": pa.array(["x"]).dictionary_encode(),
            "missing": pa.array([None], pa.string()),
            "exact": pa.array([Decimal("1.50")]),
            "flag": pa.array([True]),
            "nested": pa.array([[1]]),
        }
    )
    pq.write_table(table, path)
    [(_, cells)] = rows_of(path, ("aware", "naive", "words", "missing", "exact", "flag"))
    assert datetime.fromisoformat(cells[0]) == moment
    assert datetime.fromisoformat(cells[1]) == moment.replace(tzinfo=None)
    assert cells[2:] == ["x", "", "1.50", "true"]
    with pytest.raises(Refused, match="without plain text"):
        rows_of(path, ("nested",))


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "empty"),
        (b"a,b,c\n", "no rows"),
        (b"PAR1 but no more", "cannot be read"),
        (gzip.compress(TEXT.encode(), mtime=0)[:-9], "cannot be read"),
        (b"\x1f\x8b\x08broken", "cannot be read"),
    ],
)
def test_a_damaged_or_empty_file_is_refused(tmp_path, content, said):
    path = tmp_path / "t"
    path.write_bytes(content)
    with pytest.raises(Refused, match=said):
        TableFile(path).read(TableFile(path).header()[:1], RejectionTally())


def test_a_path_without_a_file_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(Refused, match="cannot be read"):
            TableFile(path)
