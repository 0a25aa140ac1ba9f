"""A browser is found, or installed where that can be done unasked, or else the lack of one is reported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.services import browser

SUDO = '[ "$1" = --non-interactive ] && shift && exec "$@"'


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is the whole PATH, for a user who is not root."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(browser, "_APPLICATIONS", ())
    return tmp_path


def program(machine: Path, name: str, script: str = "") -> Path:
    made = machine / name
    made.write_text(f'#!/bin/sh\necho "{name} $*" >> {machine}/log\n{script}\n')
    made.chmod(0o755)
    return made


def log(machine: Path) -> list[str]:
    return (machine / "log").read_text().splitlines() if (machine / "log").exists() else []


def installing(machine: Path) -> str:
    return f'case "$*" in *install*) /bin/ln -s /bin/true {machine}/chromium;; esac'


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"])
def test_one_that_is_there_is_used(machine: Path, name: str) -> None:
    program(machine, "apt-get")
    there = program(machine, name)
    assert browser.find_browser() == str(there)
    browser.main()
    assert not log(machine)


def test_one_among_the_applications_is_used(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = program(machine, "Google Chrome")
    monkeypatch.setattr(browser, "_APPLICATIONS", (machine / "Chromium", there))
    assert browser.find_browser() == str(there)


def test_root_installs_one(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program(machine, "apt-get", installing(machine))
    browser.main()
    assert browser.find_browser() == str(machine / "chromium")
    assert log(machine) == [
        "apt-get --quiet update",
        "apt-get --quiet install --yes --no-install-recommends chromium",
    ]


def test_sudo_without_a_password_installs_one(machine: Path) -> None:
    program(machine, "apt-get", installing(machine))
    program(machine, "sudo", SUDO)
    program(machine, "true")
    browser.main()
    assert browser.find_browser() is not None


@pytest.mark.parametrize("lacks", ["apt-get", "sudo", "password", "package", "program"])
def test_where_it_cannot_be_done_it_is_reported(machine: Path, capsys: pytest.CaptureFixture[str], lacks: str) -> None:
    if lacks != "apt-get":
        program(machine, "apt-get", "echo; echo E: no package chromium >&2; exit 100" if lacks == "package" else "")
    if lacks != "sudo":
        program(machine, "sudo", "exit 1" if lacks == "password" else SUDO)
        program(machine, "true")
    browser.main()
    printed = capsys.readouterr().err
    assert "apt-get install chromium" in printed
    assert ("E: no package chromium" in printed) == (lacks == "package")
