"""botocore's client of S3, for what pyarrow's cannot do. botocore is an optional package: ``icebench[aws]``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from icebench.engine.lazy_module import LazyModule

_REGIONS = ("AWS_DEFAULT_REGION", "AWS_REGION")

_BOTOCORE, _CONFIG, _SESSION = (LazyModule(f"botocore{name}") for name in ("", ".config", ".session"))


def botocore_session(profile: str | None = None) -> Any:  # noqa: ANN401 - botocore has no types
    """A session of botocore, of the user's profile of this name; raises NotInstalled.

    All sessions share what botocore has parsed of its descriptions of services, else each client parses and keeps them.
    """
    session = _SESSION.Session(profile=profile)
    session.register_component("data_loader", _descriptions())
    return session


@cache
def _descriptions() -> Any:  # noqa: ANN401
    return _SESSION.Session().get_component("data_loader")


def s3_client(arguments: Mapping[str, Any], *, attempts: int = 1, sign: Callable[..., None] | None = None) -> Any:  # noqa: ANN401 - botocore has no types
    """A client. Thread-safe.

    Args:
        arguments: Of `pyarrow.fs.S3FileSystem`.
        attempts: How often a request is sent at most.
        sign: Called with ``request=`` for each one that is sent, in place of signing it with credentials.

    Raises:
        NotInstalled: botocore is not installed.
    """
    endpoint = arguments.get("endpoint_override")
    style = "virtual" if arguments.get("force_virtual_addressing") or not endpoint else "path"
    options = {
        "retries": {"total_max_attempts": attempts, "mode": "standard"},
        "s3": {"addressing_style": style},
        # `arguments` have the endpoint, if any: pyarrow's client, which is given the same, knows no other.
        "ignore_configured_endpoint_urls": True,
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
    }
    if arguments.get("anonymous") or sign is not None:
        options["signature_version"] = _BOTOCORE.UNSIGNED
    if proxy := arguments.get("proxy_options"):
        options["proxies"] = {"http": proxy, "https": proxy}
    options |= {name: arguments[name] for name in ("connect_timeout",) if name in arguments}
    options |= {"read_timeout": arguments["request_timeout"]} if "request_timeout" in arguments else {}
    session = botocore_session()
    # As pyarrow's client finds it: botocore's own does not look at AWS_REGION.
    of_user = next((found for name in _REGIONS if (found := os.environ.get(name))), None)
    client = session.create_client(
        "s3",
        region_name=arguments.get("region") or of_user or session.get_config_variable("region") or "us-east-1",
        endpoint_url=endpoint if not endpoint or "://" in endpoint else f"https://{endpoint}",
        aws_access_key_id=arguments.get("access_key"),
        aws_secret_access_key=arguments.get("secret_key"),
        aws_session_token=arguments.get("session_token"),
        config=_CONFIG.Config(**options),
    )
    if sign is not None:
        client.meta.events.register_last("before-sign.s3", sign)
    return client
