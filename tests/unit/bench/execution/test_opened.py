from icebench.bench.engines.engine import EngineMissing
from icebench.bench.execution.run_file import RunWriter
from icebench.bench.records.case import Case
from icebench.bench.trials.planning import Planning, TableFiles
from tests.unit.bench.execution.scripted import Clock, ScriptedEngine, recorded


class Unreached(ScriptedEngine):
    def open(self, metadata_location: str) -> list[str]:
        raise EngineMissing(f"{self.name} reads no s3:// locations")


def test_an_engine_that_does_not_reach_a_store_is_skipped(writer: RunWriter) -> None:
    clock = Clock()
    made = recorded(writer, clock, Unreached("far", clock), ScriptedEngine("near", clock, plans={("m", None): []}))
    case = Case(workload="w", layout="small", measurement="planning")
    made.measure(Planning(case=case, location="m", filters={}, truth=TableFiles({}, lambda _: {})))
    assert not made.failures
    assert {record.engine for record in made.records} == {"near"}
    assert [(s.engine, s.reason) for s in made.skipped] == [("far", "far reads no s3:// locations")]
