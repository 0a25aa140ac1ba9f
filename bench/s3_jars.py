"""What Spark reads S3 with: hadoop-aws of PySpark's own Hadoop, and Amazon's SDK, of which it needs 600 MB.

It is no part of the usual set-up. `SparkSettings.s3` fetches it when it is missing, and so does `python -m
icebench.bench.s3_jars`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from icebench.bench.errors import BenchError
from icebench.bench.ivy_jars import Jars, directory_of, fetched, spark_jars
from icebench.bench.setup_jars import IVY_HOME

S3_SCHEMES = ("s3", "s3a", "s3n")


def hadoop_aws() -> Jars:
    """hadoop-aws of the version of PySpark's Hadoop, which takes no other; raises JarMissing without PySpark."""
    version = spark_jars("hadoop-client-api-*.jar")[0].stem.rpartition("-")[2]
    return Jars("hadoop-aws", f'<dependency org="org.apache.hadoop" name="hadoop-aws" rev="{version}"/>')


def is_fetched(ivy_home: Path = IVY_HOME) -> bool:
    """Whether the jars are there."""
    return directory_of(hadoop_aws(), ivy_home).is_dir()


def s3_jars(ivy_home: Path = IVY_HOME) -> list[Path]:
    """The jars; fetched where they are missing, which is said on standard error.

    Raises:
        JarMissing: They cannot be fetched.
        JavaMissing: There is no Java to run Ivy with.
    """
    if not is_fetched(ivy_home):
        sys.stderr.write(f"Fetching hadoop-aws, by which Spark reads S3, into {ivy_home} (600 MB, once)\n")
    return fetched(hadoop_aws(), ivy_home)


def main() -> None:
    """Fetches the jars unless they are there."""
    try:
        s3_jars()
    except BenchError as error:
        sys.exit(f"icebench: {error}")


if __name__ == "__main__":
    main()
