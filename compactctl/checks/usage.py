"""Usage: what was recorded and can not be right."""

from compactctl.checks.interface import Check

CHECKS: tuple[Check, ...] = ()
