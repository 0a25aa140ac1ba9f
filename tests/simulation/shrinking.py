"""Making a schedule that fails smaller, as long as it fails in the same way, and telling it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.simulation.running import Ending, Result, run
from tests.simulation.schedule import Operation, Point, Schedule

_MOST_RUNS = 1_500


def shrunk(schedule: Schedule, ending: Ending = "read") -> tuple[Schedule, Result]:
    """The smallest schedule that was found, and its run; inside `tests.simulation.world.deterministic`."""
    result = run(schedule, ending=ending)
    assert result.failure is not None
    kind = result.failure.kind
    runs = 0
    progress = True
    while progress and runs < _MOST_RUNS:
        progress = False
        for candidate in _smaller(schedule):
            runs += 1
            tried = run(candidate, ending=ending)
            if (
                tried.failure is not None
                and tried.failure.kind == kind
                and _size(candidate, tried) < _size(schedule, result)
            ):
                schedule, result, progress = candidate, tried, True
                break
            if runs >= _MOST_RUNS:
                break
    return schedule, result


def steps(result: Result) -> list[str]:
    """What happened, a line for each turn of an actor and each fault."""
    lines: list[str] = []
    last: int | None = None
    for event in result.events:
        if event.actor < 0:
            continue
        text = f"{event.kind} {event.text}"
        if event.actor == last and event.kind not in ("fails", "stalls", "dies"):
            lines[-1] += f"; {text}"
        else:
            lines.append(f"actor {event.actor} {text}")
        last = event.actor
    return lines


def described(schedule: Schedule, result: Result) -> str:
    """A failure for people: what went wrong, how it came, and how to see it again."""
    numbered = [f"  {number:2d}. {line}" for number, line in enumerate(steps(result), 1)]
    return "\n".join(
        [
            f"seed {schedule.seed}: {result.failure}",
            f"  table: {schedule.variant}",
            *numbered,
            f"  again: python -m tests.simulation --seed {schedule.seed}",
        ]
    )


def _size(schedule: Schedule, result: Result) -> tuple[int, int, int, int]:
    operations = [o for actor in schedule.actors for o in actor]
    weight = sum(10 + sum(len(str(v)) for v in o.args.values()) + 20 * len(o.steps) for o in operations)
    return len(operations), len(schedule.interrupts), weight, len(str(schedule.variant)) + len(steps(result))


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    """Schedules with something less, the most first."""
    for actor, operations in enumerate(schedule.actors):
        if operations:
            yield _with_actor(schedule, actor, ())
        for number in range(len(operations)):
            if len(operations) > 1:
                kept = (*operations[:number], *operations[number + 1 :])
                yield _renumbered(_with_actor(schedule, actor, kept), actor, number)
    points = sorted(schedule.interrupts)
    half = len(points) // 2
    if half > 1:
        for part in (points[:half], points[half:]):
            yield replace(schedule, interrupts={at: schedule.interrupts[at] for at in part})
    for point in points:
        yield replace(schedule, interrupts={at: what for at, what in schedule.interrupts.items() if at != point})
    for i, point in enumerate(points):
        for other in points[i + 1 :]:
            rest = {at: what for at, what in schedule.interrupts.items() if at not in (point, other)}
            yield replace(schedule, interrupts=rest)
    yield from _simpler(schedule)


def _simpler(schedule: Schedule) -> Iterator[Schedule]:
    variant = schedule.variant
    for changes in ({"deletes": False}, {"partitioning": "none"}, {"merge_count": 100}):
        if any(getattr(variant, name) != value for name, value in changes.items()):
            yield replace(schedule, variant=replace(variant, **changes))
    for actor, operations in enumerate(schedule.actors):
        for number, operation in enumerate(operations):
            for simpler in _simpler_operation(operation):
                yield _with_actor(schedule, actor, (*operations[:number], simpler, *operations[number + 1 :]))


def _simpler_operation(operation: Operation) -> Iterator[Operation]:
    if len(operation.steps) == 1:
        yield operation.steps[0]
    for i in range(len(operation.steps)):
        if len(operation.steps) > 1:
            yield replace(operation, steps=(*operation.steps[:i], *operation.steps[i + 1 :]))
        for simpler in _simpler_operation(operation.steps[i]):
            yield replace(operation, steps=(*operation.steps[:i], simpler, *operation.steps[i + 1 :]))
    args = operation.args
    if len(args.get("rows", ())) > 1 and "changes" not in args:
        yield replace(operation, args={**args, "rows": args["rows"][:1]})
        yield replace(operation, args={**args, "rows": args["rows"][1:]})
    if len(args.get("changes", ())) > 1:
        yield replace(operation, args={**args, "changes": args["changes"][:1]})
        yield replace(operation, args={**args, "changes": args["changes"][1:]})
    if args.get("branch", "main") != "main":
        yield replace(operation, args={**args, "branch": "main"})


def _with_actor(schedule: Schedule, actor: int, operations: tuple[Operation, ...]) -> Schedule:
    actors = (*schedule.actors[:actor], operations, *schedule.actors[actor + 1 :])
    interrupts = {
        at: what
        for at, what in schedule.interrupts.items()
        if (at[0] != actor or operations) and not (what.kind == "switch" and not actors[what.to])
    }
    return replace(schedule, actors=actors, interrupts=interrupts)


def _renumbered(schedule: Schedule, actor: int, gone: int) -> Schedule:
    """The interrupts without those of an operation that is gone."""

    def moved(point: Point) -> Point | None:
        if point[0] != actor or point[1] < gone:
            return point
        return None if point[1] == gone else (actor, point[1] - 1, point[2])

    renumbered = {moved(at): what for at, what in schedule.interrupts.items()}
    return replace(schedule, interrupts={at: what for at, what in renumbered.items() if at is not None})
