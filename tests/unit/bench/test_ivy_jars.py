import subprocess
from pathlib import Path

import pytest

from icebench.bench import ivy_jars, s3_jars
from icebench.bench.ivy_jars import Jars, directory_of, fetched
from icebench.bench.setup_jars import JarMissing

JARS = Jars("things", '<dependency org="org.example" name="thing" rev="1.0"/>')


def test_what_is_there_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivy_jars, "fetch", lambda *_: pytest.fail("fetched jars that are there"))
    directory_of(JARS, tmp_path).mkdir()
    (directory_of(JARS, tmp_path) / "thing-1.0.jar").touch()
    assert [path.name for path in fetched(JARS, tmp_path)] == ["thing-1.0.jar"]
    later = Jars("things", JARS.dependencies.replace("1.0", "2.0"))
    assert directory_of(later, tmp_path) != directory_of(JARS, tmp_path)


def test_what_ivy_says_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert JARS.dependencies in Path(command[command.index("-ivy") + 1]).read_text()
        return subprocess.CompletedProcess(command, 1, "unresolved dependency: org.example#thing;1.0: not found\n", "")

    monkeypatch.setattr(ivy_jars, "find_java_home", lambda: tmp_path)
    monkeypatch.setattr(subprocess, "run", refused)
    with pytest.raises(JarMissing, match=r"could not fetch things \(exit 1\): unresolved dependency: .* not found"):
        fetched(JARS, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_hadoop_aws_is_that_of_pysparks_hadoop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (client,) = ivy_jars.spark_jars("hadoop-client-api-*.jar")
    jars = s3_jars.hadoop_aws()
    assert f'name="hadoop-aws" rev="{client.stem.removeprefix("hadoop-client-api-")}"' in jars.description
    monkeypatch.setattr(ivy_jars, "fetch", lambda jars, home: directory_of(jars, home).mkdir())
    assert not s3_jars.is_fetched(tmp_path)
    s3_jars.s3_jars(tmp_path)
    assert "600 MB" in capsys.readouterr().err
    assert s3_jars.is_fetched(tmp_path)
    s3_jars.s3_jars(tmp_path)
    assert capsys.readouterr().err == ""
