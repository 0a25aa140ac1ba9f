"""Pruning effectiveness: exact figures, looked up in what `setup_cache` measured once."""

from __future__ import annotations

from .prepared import Prepared, Quick, experiment


class Pruning(Quick):
    """Planned files against the files that hold a matching row; lower is better for all but recall."""

    params = (list(experiment().layouts), list(experiment().filters))
    param_names = ("layout", "filter")

    def track_files_planned(self, prepared: Prepared, layout: str, filter: str) -> float:
        """How many data files a plan keeps."""
        return prepared.figures[layout, filter]["files_planned"]

    def track_entries_decoded(self, prepared: Prepared, layout: str, filter: str) -> float:
        """How many manifest entries were decoded for it."""
        return prepared.figures[layout, filter]["entries_decoded"]

    def track_false_positive_rate(self, prepared: Prepared, layout: str, filter: str) -> float:
        """Of the files without a match, the planned share."""
        return prepared.figures[layout, filter]["false_positive_rate"]

    def track_recall(self, prepared: Prepared, layout: str, filter: str) -> float:
        """Of the files with a match, the planned share; anything but 1 loses rows."""
        return prepared.figures[layout, filter]["recall"]


for _name, _unit in (("files_planned", "files"), ("entries_decoded", "entries")):
    getattr(Pruning, f"track_{_name}").unit = _unit
for _name in ("false_positive_rate", "recall"):
    getattr(Pruning, f"track_{_name}").unit = "ratio"
