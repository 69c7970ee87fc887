"""Resume: what an agent or a provider stumbles over when the session goes on."""

from compactctl.checks.interface import Check

CHECKS: tuple[Check, ...] = ()
