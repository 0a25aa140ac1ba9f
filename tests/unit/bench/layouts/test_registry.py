from bench.layouts.registry import LAYOUTS


def test_layouts_are_found_by_their_names() -> None:
    assert list(LAYOUTS) == ["unpartitioned", "monthly", "sorted"]
    assert all(layout.name == name and layout.description and layout.revision >= 1 for name, layout in LAYOUTS.items())


def test_what_tells_the_layouts_apart() -> None:
    assert {name: (x.partition_fields, x.sort_columns) for name, x in LAYOUTS.items()} == {
        "unpartitioned": ((), ()),
        "monthly": ((("ss_sold_date", "month"),), ()),
        "sorted": ((), ("ss_item_sk",)),
    }
