"""What the tests of Layer 2 may use."""

import msgspec
import pytest

from compactctl import desk
from tests.builders.provider import FakeProvider
from tests.layer2.running import SUMMARY


@pytest.fixture
def provider(monkeypatch):
    """Let every run of this test ask the provider that this gives."""

    def install(*replies, **more):
        fake = FakeProvider(replies or [SUMMARY], **more)
        real = desk.make
        monkeypatch.setattr(
            desk, "make", lambda given, *rest: msgspec.structs.replace(real(given, *rest), provider=fake)
        )
        return fake

    return install
