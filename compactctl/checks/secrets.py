"""Secrets: credentials, by kind, place and fingerprint."""

from compactctl.checks.interface import Check

CHECKS: tuple[Check, ...] = ()
