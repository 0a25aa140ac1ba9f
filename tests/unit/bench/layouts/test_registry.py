from icebench.bench.experiment import parse_values
from icebench.bench.layouts.registry import known_layouts


def test_layouts_that_come_with_the_project_are_for_store_sales() -> None:
    layouts = known_layouts()
    assert len(layouts) >= 12
    assert list(layouts)[:3] == ["unpartitioned", "monthly", "sorted"]
    values = {
        "name": "all of them",
        "layouts": list(layouts),
        "engines": ["icebench"],
        "workload": {"kind": "tpcds", "scale": 0.01},
    }
    found = parse_values(values).layouts
    assert [layout.name for layout in found] == list(layouts)
    assert all(layout.description != "no description" for layout in found)
    assert all(layout.files == 61 for layout in found if layouts[layout.name].files is None)


def test_no_two_are_the_same() -> None:
    seen = [{**vars(layout), "name": "", "description": ""} for layout in known_layouts().values()]
    assert all(one not in seen[:place] for place, one in enumerate(seen))
