"""Tests mirror the packages; builders and expectations are shared, everything else is local to its test."""
