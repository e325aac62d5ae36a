"""Findings in each form that a person or a program reads: terminal text, JSON, JUnit, SARIF, GitHub, one line each."""
