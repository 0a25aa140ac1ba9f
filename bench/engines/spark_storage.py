"""Options of a store as Hadoop's file systems in a Spark session take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pyspark.sql import SparkSession

from icebench.bench.engines.access import Access
from icebench.bench.engines.engine import EngineMissing
from icebench.bench.s3_jars import S3_SCHEMES
from icebench.engine.spark.session import refuse_unknown_schemes
from icebench.errors import Unsupported

_S3A = {
    "s3.endpoint": "endpoint",
    "s3.region": "endpoint.region",
    "s3.access-key-id": "access.key",
    "s3.secret-access-key": "secret.key",
    "s3.session-token": "session.token",
    "s3.role-arn": "assumed.role.arn",
}
_PROVIDERS = "org.apache.hadoop.fs.s3a"


def give_access(spark: SparkSession, access: Access) -> None:
    """Have the session's file systems open the files of a table.

    Raises:
        EngineMissing: It has none for that scheme, or none that takes the options.
    """
    if not access.scheme:
        return
    try:
        refuse_unknown_schemes(spark, [f"{access.scheme}://"])
    except Unsupported as error:
        raise EngineMissing(f"Spark's session reads no {access.scheme}:// locations: {error}") from error
    if access.options and access.scheme not in S3_SCHEMES:
        raise EngineMissing(f"Spark is not given the catalog's options for {access.scheme}:// locations")
    # pyspark offers no public way into the JVM.
    configuration = cast("Any", spark.sparkContext._jsc).hadoopConfiguration()  # noqa: SLF001
    for name, value in s3a_settings(access.in_pyiceberg_names).items():
        configuration.set(name, value)


def s3a_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Settings of S3A by options with PyIceberg's names."""
    found = {f"fs.s3a.{_S3A[name]}": value for name, value in options.items() if name in _S3A}
    if "s3.endpoint" in options:
        virtual = options.get("s3.force-virtual-addressing", "false").lower() == "true"
        found["fs.s3a.path.style.access"] = str(not virtual).lower()
        found["fs.s3a.connection.ssl.enabled"] = str(not options["s3.endpoint"].startswith("http://")).lower()
    if "s3.role-arn" in options:
        found["fs.s3a.aws.credentials.provider"] = f"{_PROVIDERS}.auth.AssumedRoleCredentialProvider"
    elif "s3.session-token" in options:
        found["fs.s3a.aws.credentials.provider"] = f"{_PROVIDERS}.TemporaryAWSCredentialsProvider"
    elif "s3.access-key-id" in options:
        found["fs.s3a.aws.credentials.provider"] = f"{_PROVIDERS}.SimpleAWSCredentialsProvider"
    elif options.get("s3.anonymous", "false").lower() == "true":
        found["fs.s3a.aws.credentials.provider"] = f"{_PROVIDERS}.AnonymousAWSCredentialsProvider"
    return found
