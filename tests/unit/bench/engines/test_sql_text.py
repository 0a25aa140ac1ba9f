import duckdb
import pytest

from icebench.bench.engines.sql_text import identifier, plain_or_quoted, with_backticks


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ("id = 1", "id = 1"),
        ('"v w" = 1 and "a`b" = 2', "`v w` = 1 and `a``b` = 2"),
        ("""name = 'it''s "x"' and "a""b" < 3""", """name = 'it''s "x"' and `a"b` < 3"""),
        ("", ""),
    ],
)
def test_names_in_double_quotes_become_names_of_spark(filter: str, expected: str) -> None:
    assert with_backticks(filter) == expected


def test_words_that_are_reserved_are_quoted() -> None:
    words = duckdb.sql("select keyword_name from duckdb_keywords() where keyword_category = 'reserved'").fetchall()
    assert words
    for (word,) in words:
        assert plain_or_quoted(word) == identifier(word)
    assert plain_or_quoted("item_sk2") == "item_sk2"
