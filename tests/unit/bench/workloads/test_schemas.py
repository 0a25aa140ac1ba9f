import pyarrow as pa
import pytest

from icebench.bench.workloads.schemas import TABLES, schema


def test_store_sales_is_as_specified() -> None:
    fields = schema("store_sales", wide_decimals=False)
    assert len(fields) == 23
    assert sum(field.type == pa.decimal128(7, 2) for field in fields) == 12
    assert [field.name for field in fields if not field.nullable] == ["ss_item_sk", "ss_ticket_number"]
    assert fields.field("ss_ticket_number").type == pa.int64()
    assert {field.type for field in fields if field.name.endswith("_sk")} == {pa.int32()}


def test_wide_decimals_come_last_and_only_in_store_sales() -> None:
    wide = schema("store_sales", wide_decimals=True)
    assert [str(field.type) for field in wide][23:] == ["decimal128(15, 2)", "decimal128(20, 2)", "decimal128(38, 6)"]
    for table in TABLES[1:]:
        assert schema(table, wide_decimals=True) == schema(table, wide_decimals=False)


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("store_sales", 23),
        ("store_returns", 20),
        ("catalog_sales", 34),
        ("catalog_returns", 27),
        ("web_sales", 34),
        ("web_returns", 24),
        ("inventory", 4),
    ],
)
def test_all_columns_of_the_specification_are_there(table: str, columns: int) -> None:
    assert len(schema(table, wide_decimals=False)) == columns


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(ValueError, match="no such table: 'web_sale'"):
        schema("web_sale", wide_decimals=False)
