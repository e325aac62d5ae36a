"""Runs one shard of a prepared test folder under pytest and writes what each test did. Started plain or captured.

usage: suite_runner.py RESULTS SHARD SHARDS [FILE ...]
It is copied into the prepared folder, so that both starts see the same program.
"""

import json
import re
import sys
import warnings

import pytest


class Outcomes:
    """What each test did, and each warning, in order."""

    def __init__(self, shard, shards):
        self.shard, self.shards = shard, shards
        self.tests, self.warnings = {}, []

    def pytest_collection_modifyitems(self, items):
        items[:] = items[self.shard :: self.shards]

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            text = "" if report.outcome == "passed" else str(report.longrepr)
            self.tests[report.nodeid] = (report.outcome, re.sub(r"0x[0-9a-f]+|\d+\.\d+ ?(m|u)?s\b", "~", text))

    def pytest_warning_recorded(self, warning_message, nodeid):
        place = (warning_message.category.__name__, warning_message.filename, warning_message.lineno)
        self.warnings.append([nodeid, *place, re.sub("0x[0-9a-f]+", "~", str(warning_message.message))])


def main():
    results, shard, shards, *files = sys.argv[1:]
    outcomes = Outcomes(int(shard), int(shards))
    warnings.simplefilter("default")
    arguments = ["-q", "-p", "no:cacheprovider", "--assert=plain", "--tb=short", "-c", "pytest.ini", *files]
    code = pytest.main(arguments, plugins=[outcomes])
    with open(results, "w") as out:
        json.dump({"code": int(code), "tests": outcomes.tests, "warnings": outcomes.warnings}, out)


main()
