"""What a job gives up before its result is read: of a huge session there is no room for both."""

import gc
from types import FunctionType, ModuleType

import pytest

from compactctl import job, layout, session
from compactctl.model import Message
from compactctl.options import Options
from tests.builders.big_chat import big_chat


def messages_held(value):
    """Return how many messages can be reached from a value."""
    seen, found, waiting = set(), 0, [value]
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, type | FunctionType | ModuleType):
            continue
        seen.add(id(item))
        found += isinstance(item, Message)
        waiting += gc.get_referents(item)
    return found


@pytest.mark.parametrize("estimator", ["heuristic", "calibrated"])
def test_no_message_stays_once_the_contexts_are_forgotten(write_session, estimator):
    path = write_session(big_chat())
    with session.opened(str(path), None) as opened:
        planned = job.start(opened, Options(apply=True, estimator=estimator), layout.own_paths(path))
        assert planned.plans[0].spills
        assert messages_held(planned) >= 9
        planned.forget_contexts()
        assert messages_held(planned) == 0
