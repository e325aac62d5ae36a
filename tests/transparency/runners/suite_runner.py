"""Runs one shard of a prepared test folder under pytest and writes down each test as it goes. Started plain or captured.

usage: suite_runner.py EVENTS SHARD SHARDS [FILE ...]
It is copied into the prepared folder, so that both starts see the same program. EVENTS gets a line of JSON for each
test that begins, each outcome, each warning, and the end: what is read of a process that had to be ended is whole but
for the test that it was at. Tests that EVENTS names already when it starts are left out: a second start goes on behind
the test at which the first one was ended.
"""

import json
import os
import re
import sys
import warnings

import pytest


class Outcomes:
    """Tells what each test did, and each warning, in order."""

    def __init__(self, events, shard, shards):
        self.shard, self.shards = shard, shards
        self.met = set()
        if os.path.exists(events):
            with open(events) as lines:
                self.met = {words[1] for words in map(json.loads, lines) if words[0] == "begins"}
        self.events = events

    def tell(self, *words):
        with open(self.events, "a") as out:  # a process that dies leaves what the file contains
            out.write(json.dumps(words) + "\n")

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items[self.shard :: self.shards] if item.nodeid not in self.met]

    def pytest_runtest_logstart(self, nodeid):
        self.tell("begins", nodeid)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            text = "" if report.outcome == "passed" else str(report.longrepr)
            self.tell("test", report.nodeid, report.outcome, re.sub(r"0x[0-9a-f]+|\d+\.\d+ ?(m|u)?s\b", "~", text))

    def pytest_warning_recorded(self, warning_message, nodeid):
        place = (warning_message.category.__name__, warning_message.filename, warning_message.lineno)
        self.tell("warning", nodeid, *place, re.sub("0x[0-9a-f]+", "~", str(warning_message.message)))


def main():
    events, shard, shards, *files = sys.argv[1:]
    outcomes = Outcomes(events, int(shard), int(shards))
    warnings.simplefilter("default")
    arguments = ["-q", "-p", "no:cacheprovider", "--assert=plain", "--tb=short", "-c", "pytest.ini", *files]
    code = pytest.main(arguments, plugins=[outcomes])
    outcomes.tell("ends", int(code))


main()
