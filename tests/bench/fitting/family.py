"""A family of a profile: fitted on everything, its errors those of fits that did not see what they are of."""

import numpy as np

from compactctl.framing import OPAQUE
from compactctl.profiles import Family, Frames, HeldOut
from tests.bench.fitting import sealed
from tests.bench.fitting.data import Data, own_steps
from tests.bench.fitting.figures import by_model, described, errors, spread
from tests.bench.fitting.held_out import held_out
from tests.bench.fitting.learning import learn, predicted
from tests.bench.fitting.targets import Target, target_of


def family(data: Data, target: Target, source: str) -> tuple[Family, np.ndarray | None]:
    """Return a family fitted on everything, with its errors on what fits did not see, and its weights."""
    by_session, by_repository = held_out(data, target, "session"), held_out(data, target, "repository")
    lines = []
    for by, predictions in (("session", by_session), ("repository", by_repository)):
        for model, own in by_model(predictions):
            n, *figures = described(errors((found.calibrated, found.step.actual) for found in own))
            lines.append(HeldOut(model, by, n, *(round(figure, 4) for figure in figures)))
    learnt = learn(data, target, own_steps(data, target), np.ones(len(data.texts.texts), dtype=bool))
    found = learnt.frames.items()
    opaque = {name.removeprefix(OPAQUE): round(tokens, 1) for name, tokens in found if name.startswith(OPAQUE)}
    plain = {name: round(tokens, 2) for name, tokens in found if not name.startswith(OPAQUE)}
    frames = Frames(**plain, opaque=opaque)
    thoughts = [thought for thought in data.thoughts if target_of(thought.model) is target]
    spreads = {
        "calibrated": spread([(found.step, found.calibrated) for found in by_session]),
        "heuristic": spread([(step, step.heuristic) for step in own_steps(data, target)]),
        "tiktoken": spread([(step, step.tiktoken) for step in own_steps(data, target)]),
    }
    made = Family(
        name=target.name,
        models=target.models,
        weights=None if learnt.weights is None else target.name,
        ctok=target.version,
        values_alone=target.version is not None,
        frames=frames,
        sealed=sealed.fit(thoughts, lambda thought: predicted(data, learnt, thought)),
        spreads=spreads,
        source=source,
        held_out=tuple(lines),
    )
    return made, learnt.weights
