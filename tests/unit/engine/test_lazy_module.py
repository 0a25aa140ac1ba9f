import sys
from pathlib import Path

import pytest

from icebench.engine.lazy_module import EXTRAS, LazyModule
from icebench.errors import NotInstalled


@pytest.mark.parametrize(("package", "extra"), EXTRAS.items())
def test_a_missing_package_of_an_extra_is_reported_with_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str, extra: str
) -> None:
    (tmp_path / f"needs_{package}.py").write_text(f"import {package}.sql\nvalue = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(NotInstalled) as raised:
        _ = LazyModule(f"needs_{package}").value
    assert str(raised.value) == f"{package} is not installed: pip install 'icebench[{extra}]'"


def test_other_modules_that_are_not_there_are_mistakes() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"engine\.nothing"):
        _ = LazyModule("icebench.engine.nothing").value
