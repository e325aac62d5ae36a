"""Which request begins next, by tenant, and what one tenant may have at work; behind a real server: test_fairness.py."""

from __future__ import annotations

import dataclasses
import threading
from types import SimpleNamespace

import pytest
from waitress.task import ThreadedTaskDispatcher

from service.limits import turns
from service.limits.request_bodies import Senders
from service.limits.steps import REST_SECONDS, STEP_SECONDS
from service.limits.turns import ASKING_SECONDS, LONGEST_SECONDS, HeldTooLong, Turns, aside

GREEDY, OTHER, THIRD, STRANGERS = "Bearer greedy", "Bearer other", "Bearer third", ""


@dataclasses.dataclass
class Connection:
    """One request, as waitress's dispatcher is given it."""

    requests: list
    name: str
    during: object = None
    canceled: bool = False

    def service(self):
        if self.during is not None:
            self.during()

    def cancel(self):
        self.canceled = True


@pytest.fixture
def line(clock):
    """Requests come and begin here, by name."""
    senders = Senders()
    senders.remember(GREEDY, 1)
    senders.remember(OTHER, 2)
    return Line(Turns(senders, ThreadedTaskDispatcher(), most=2, alone=12, step=0.0, clock=clock))


@pytest.fixture
def stepping(clock):
    """The same, where those of a tenant go one after the other."""
    senders = Senders()
    for number, key in enumerate((GREEDY, OTHER, THIRD), 1):
        senders.remember(key, number)
    return Line(Turns(senders, ThreadedTaskDispatcher(), most=2, alone=12, clock=clock))


class Line:
    def __init__(self, made):
        self.turns, self.at_work, self.order = made, {}, []

    def come(self, names, key, path="/v1/runs", during=None, method="GET"):
        for name in names.split():
            request = SimpleNamespace(
                command=method, path=path, headers={"AUTHORIZATION": key} if key else {}, error=None
            )
            self.turns.append(Connection([request], name, during))

    def begin(self):
        """Names of all that may begin now, in their order."""
        begun = []
        while self.turns:
            work = self.turns.popleft()
            self.at_work[work._channel.name] = work
            begun.append(work._channel.name)
        return begun

    def end(self, name):
        """Its answer was given; the request as it then was."""
        work = self.at_work.pop(name)
        work.service()
        return work._channel.requests[0]


def test_while_another_asks_a_tenant_has_two_at_work_and_tenants_take_turns(line):
    line.come("a1 a2 a3 a4", GREEDY)
    line.come("b1 b2 b3", OTHER)
    assert line.begin() == ["a1", "b1", "a2", "b2"]
    line.end("b1")
    assert line.begin() == ["b3"]
    line.end("a2")
    assert line.begin() == ["a3"]
    assert len(line.turns) == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_of_what_a_tenant_has_at_work_half_as_many_write(line, method):
    line.come("b1", OTHER)
    line.come("w1 w2", GREEDY, method=method)
    line.come("a1 a2 a3", GREEDY)
    assert line.begin() == ["b1", "w1", "a1", "a2"]
    line.end("w1")
    assert line.begin() == ["w2"]


def test_who_asks_alone_leaves_a_quarter_of_the_threads_free(line):
    line.come(" ".join(f"a{n}" for n in range(20)), GREEDY)
    assert len(line.begin()) == 12
    line.come("b1 b2 b3", OTHER)
    assert line.begin() == ["b1", "b2"]
    line.end("a0")
    assert line.begin() == []


def test_ten_seconds_after_another_s_last_request_a_tenant_is_alone_again(line, clock):
    line.come("b1", OTHER)
    line.begin()
    line.end("b1")
    line.come("a1 a2 a3 a4", GREEDY)
    clock.now += ASKING_SECONDS
    assert line.begin() == ["a1", "a2"]
    clock.now += 0.1
    assert line.begin() == ["a3", "a4"]


def test_another_s_request_that_takes_long_counts_as_asking_until_its_end(line, clock):
    line.come("b1", OTHER)
    line.begin()
    clock.now += 600
    line.come("a1 a2 a3", GREEDY)
    assert line.begin() == ["a1", "a2"]
    line.end("b1")
    assert line.begin() == ["a3"]


def test_frames_and_ends_of_recorders_are_not_held_back_by_other_requests_nor_the_other_way_round(line):
    line.come("b1", OTHER)
    line.come("a1 a2 a3", GREEDY)
    line.begin()
    run = "/v1/runs/run_01JD8PZ4T8W2K5C7Q9R3M6X1BA"
    line.come("f1 f2 f3", GREEDY, f"{run}/frames/7", method="PUT")
    line.come("e1", GREEDY, f"{run}/end", method="POST")
    assert line.begin() == ["f1", "f2"]  # they too are bounded
    line.end("f1")
    assert line.begin() == ["f3"]
    line.come("g1", GREEDY, f"{run}/events")
    assert line.begin() == []


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_health_check_is_first_is_not_counted_and_nobody_who_asks(line, path):
    line.come("h1 h2 h3", STRANGERS, path)
    line.come("a1 a2 a3", GREEDY)
    assert line.begin() == ["h1", "h2", "h3", "a1", "a2", "a3"]
    line.come("b1 b2 b3", OTHER)
    line.begin()
    line.come("h4 h5 h6", STRANGERS, path)
    assert line.begin() == ["h4", "h5", "h6"]


def test_all_of_whom_it_is_not_known_are_as_one(line):
    line.come("a1", GREEDY)
    line.come("s1 s2", STRANGERS)
    line.come("s3", "Bearer never seen")
    assert line.begin() == ["a1", "s1", "s2"]


def test_a_request_that_waits_for_something_is_not_at_work_and_is_again_afterwards(line):
    line.come("b1", OTHER)
    seen = []

    def wait():
        with aside():
            seen.append(line.begin())
        line.end("a2")
        seen.append(line.begin())

    line.come("a1", GREEDY, during=wait)
    line.come("a2 a3 a4", GREEDY)
    assert line.begin() == ["b1", "a1", "a2"]
    line.end("a1")
    assert seen == [["a3"], []]  # a1 and a3 are at work then
    assert line.begin() == ["a4"]


def test_a_tenant_begins_its_next_after_its_last_and_after_that_of_one_who_waits_for_nothing(stepping):
    stepping.come("b0", OTHER)
    stepping.begin()
    stepping.end("b0")
    stepping.come("a1 a2 a3 a4", GREEDY)
    assert stepping.begin() == ["a1"]
    stepping.come("b1", OTHER)
    assert stepping.begin() == ["b1"]
    stepping.end("a1")
    assert stepping.begin() == [], "a tenant that sends without a pause must wait for the other"
    stepping.end("b1")
    assert stepping.begin() == ["a2"]
    stepping.end("a2")
    assert stepping.begin() == ["a3"], "nobody else has anything at work"


def test_what_is_at_work_for_longer_than_a_step_holds_nobody_up(stepping, clock):
    stepping.come("b1", OTHER)
    stepping.come("a1 a2 a3", GREEDY)
    assert stepping.begin() == ["b1", "a1"]
    clock.now += STEP_SECONDS / 2
    assert stepping.begin() == []
    clock.now += STEP_SECONDS
    assert stepping.begin() == ["a2"], "a second one beside a long one"
    clock.now += 2 * STEP_SECONDS
    assert stepping.begin() == [], "and no third"
    stepping.end("a1")
    clock.now += REST_SECONDS
    assert stepping.begin() == ["a3"], "whatever others have at work"


@pytest.mark.parametrize(("took", "rests"), [(4 * STEP_SECONDS, 4 * STEP_SECONDS), (9.0, REST_SECONDS)])
def test_after_one_that_took_long_others_go_first_for_as_long(stepping, clock, took, rests):
    """An audit's hundred runs, say: each is answered, and the next is in its place at once."""
    stepping.come("b0", OTHER)
    stepping.begin()
    stepping.come("w1 w2", GREEDY, method="POST")
    assert stepping.begin() == ["w1"]
    clock.now += took
    stepping.end("b0")
    stepping.come("b1", OTHER)
    assert stepping.begin() == ["b1"]
    stepping.end("w1")
    clock.now += rests / 2
    assert stepping.begin() == []
    clock.now += rests
    assert stepping.begin() == ["w2"]


def test_of_two_that_ask_without_a_pause_each_has_one_at_work(stepping):
    """So a database that is waited for serves as many as there are tenants."""
    stepping.come("a1 a2 a3", GREEDY)
    stepping.come("b1 b2 b3", OTHER)
    assert stepping.begin() == ["a1", "b1"]
    stepping.end("a1")
    assert stepping.begin() == ["a2"]
    stepping.end("b1")
    stepping.end("a2")
    assert stepping.begin() == ["b2", "a3"]


def test_reads_and_writes_of_a_tenant_go_one_after_the_other_and_its_recorders_beside_them(stepping):
    stepping.come("b1", OTHER)
    stepping.come("a1", GREEDY)
    stepping.come("w1", GREEDY, method="POST")
    stepping.come("f1 f2", GREEDY, "/v1/runs/run_01JD8PZ4T8W2K5C7Q9R3M6X1BA/frames/7", method="PUT")
    assert stepping.begin() == ["b1", "a1", "f1"]
    stepping.end("b1")
    stepping.end("a1")
    assert stepping.begin() == ["w1"]


def test_who_asks_alone_takes_no_steps(stepping):
    stepping.come("a1 a2 a3 a4", GREEDY)
    assert stepping.begin() == ["a1", "a2", "a3", "a4"]


@pytest.mark.parametrize("others", [1, 2])
def test_what_waits_for_the_clock_alone_begins_without_anybody_s_end(stepping, clock, others):
    """A thread looks at the clock for it: nobody comes, and nothing ends."""
    for key in (OTHER, THIRD)[:others]:
        stepping.come(f"b{key[-1]}", key)
    stepping.come("a1 a2", GREEDY)
    stepping.begin()
    free, woken, ready = stepping.turns._free, threading.Event(), threading.Event()

    def idle():
        with free:
            ready.set()
            while not stepping.turns:
                free.wait(60)
        woken.set()

    threading.Thread(target=idle, daemon=True).start()
    assert ready.wait(60)
    assert not woken.wait(0.2)
    clock.now += 2 * STEP_SECONDS
    assert woken.wait(60)


def test_nothing_is_at_work_where_nothing_is_served():
    with aside():
        pass


def test_one_that_was_held_back_for_too_long_is_refused_and_one_that_was_not_is_answered(line, clock):
    line.come("b1", OTHER)
    line.come("a1 a2 a3 a4", GREEDY)
    line.begin()
    clock.now += LONGEST_SECONDS
    line.end("a1")
    assert line.begin() == ["a3"]
    assert line.end("a3").error is None
    clock.now += 1
    assert line.begin() == ["a4"]
    refused = line.end("a4").error
    assert isinstance(refused, HeldTooLong)
    assert line.end("a2").error is None  # at work for long, and never held back
    assert (line.turns.held_back, line.turns.refused) == (2, 1)


def test_a_server_that_stops_cancels_what_still_waits(line):
    line.come("b1", OTHER)
    line.come("a1 a2 a3", GREEDY)
    line.begin()
    held = line.turns._waiting[next(iter(line.turns._waiting))][0]._channel
    line.turns.stop()
    assert line.turns
    line.turns.popleft().cancel()
    assert held.canceled


def test_a_thread_that_waits_wakes_another_for_what_may_begin_now(line):
    """No other thread ends a request here, so only who goes aside can tell that there is room."""
    line.come("b1", OTHER)
    line.come("a1 a2 a3", GREEDY)
    line.begin()
    free, woken, ready = line.turns._free, threading.Event(), threading.Event()

    def idle():
        with free:
            ready.set()
            free.wait(60)
        woken.set()

    thread = threading.Thread(target=idle, daemon=True)
    thread.start()
    assert ready.wait(60)
    line.turns.leave(line.at_work["a1"].lane, goes_on=False)
    assert woken.wait(60)


def test_who_has_logged_in_is_known_by_the_cookie_of_the_login():
    found = turns.credentials(None, "theme=dark; __Host-backprobe=abc.def; x=y")
    assert found == turns.credentials("", "backprobe=abc.def") == "Session abc.def"
    assert turns.credentials("Bearer k", "backprobe=abc.def") == "Bearer k"
    assert turns.credentials(None, "notbackprobe=abc") == turns.credentials(None, None) == ""


@pytest.mark.parametrize("text", ["0", "17", "-1", "two", "²"])
def test_threads_of_a_tenant_that_are_none_are_refused(tmp_path, text):
    from service.settings import Settings

    with pytest.raises(ValueError, match=r"BACKPROBE_TENANT_THREADS .* from 1 to 16"):
        Settings.from_environment({"BACKPROBE_TENANT_THREADS": text}, tmp_path)
    assert Settings.from_environment({"BACKPROBE_TENANT_THREADS": "16"}, tmp_path).tenant_threads == 16
    assert Settings.from_environment({}, tmp_path).tenant_threads == turns.MOST_AT_WORK
