"""Statements: what a team pays for a month and why, on paper, in a spreadsheet and as data."""

from orchestration.publish.statements.files import Statements, write_statements

__all__ = ["Statements", "write_statements"]
