"""What `audit` looks for beyond what reading finds. A new check is a function here or beside its format's code, one
line in this table, and a planted fault in the tests."""

from compactctl.checks import loss, resume, secrets, size, usage
from compactctl.checks.interface import Check

CHECKS: tuple[Check, ...] = (*resume.CHECKS, *size.CHECKS, *usage.CHECKS, *loss.CHECKS, *secrets.CHECKS)
"""Every check. Each is pure: it reads the session, the settings and perhaps files beside the session."""
