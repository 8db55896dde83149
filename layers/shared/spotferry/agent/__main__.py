"""Starts the agent: settings on standard input, then one attempt's life, then the machine's end."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import threading
from datetime import datetime, timezone
from types import FrameType
from typing import Optional

from spotferry.agent.broker import Broker
from spotferry.agent.clock import Clock
from spotferry.agent.cloud_credentials import CloudCredentials
from spotferry.agent.console import say, thread_or_nothing
from spotferry.agent.errors import Order
from spotferry.agent.guard import Guard
from spotferry.agent.inputs import Inputs
from spotferry.agent.job import Job, Tools
from spotferry.agent.joblog import JobLog
from spotferry.agent.lease import Lease
from spotferry.agent.life import Life
from spotferry.agent.link import Link
from spotferry.agent.machine import shield, shut_down
from spotferry.agent.orders import TAKEN_BACK, Orders
from spotferry.agent.plan import Plan
from spotferry.agent.processes import Brood
from spotferry.agent.settings import Places, Settings
from spotferry.agent.task import Runner
from spotferry.agent.uploads import Uploader
from spotferry.agent.watch import Notice, Watch, say_farewell, watcher_of
from spotferry.agent.world import World


def main() -> int:
    """Run the agent; the exit status is for the console only, since the machine ends either way."""
    shield()
    try:
        settings = Settings.parse(sys.stdin.read())
    except ValueError as error:
        say(f"no settings on standard input: {error}")
        return os.EX_USAGE
    say(f"agent of {settings}")
    _live(settings)
    say_farewell(settings.provider)
    say("done; the machine is shut down")
    shut_down()
    return os.EX_OK


def _live(settings: Settings) -> None:
    """Put the parts together, and live."""
    clock = Clock()
    lease = Lease(clock)
    places = Places.of(os.environ, os.geteuid())
    places.make()
    world = World(places)
    brood = Brood(world.user_id)
    thread_or_nothing("guard", Guard(lease, brood, shut_down, clock).run)
    orders = Orders(clock)
    log = JobLog(places.log)
    link = Link(Broker(settings, secrets.token_hex(32)), orders, lease, log, clock)
    runner = Runner(world, places.scripts, places.log, brood, clock)
    uploader = Uploader(link, clock, places.spool)

    def make_job(plan: Plan) -> Job:
        return Job(plan, Tools(world, places, runner, log, uploader, link.report, clock))

    _release_when_terminated(orders)
    inputs = Inputs(world, CloudCredentials(settings.provider, os.environ, clock), clock)
    Life(link, orders, make_job, clock, lambda: _listen(settings, link, orders, clock), inputs).run()


def _listen(settings: Settings, link: Link, orders: Orders, clock: Clock) -> None:
    """Start the threads that hear from the broker and from the cloud."""
    thread_or_nothing("link", link.run)
    watcher = watcher_of(settings.provider, clock)
    if watcher is None:
        say(f"the metadata service of {settings.provider} is not watched: notices come from the broker only")
        return

    def tell(notice: Notice) -> None:
        say(f"notice: {notice.kind} ({notice.code}), deadline {notice.deadline}")
        if notice.kind == "take_back":
            orders.end(Order("release", TAKEN_BACK, urgent=True, ends_at=_by_the_clock(notice.deadline, clock)))
        link.urgently("notice", notice.data())

    thread_or_nothing("watch", Watch(watcher, tell, clock).run)


def _by_the_clock(deadline: Optional[str], clock: Clock) -> Optional[float]:
    """When a deadline (RFC 3339) is; None where there is none, or it is not one."""
    try:
        at = datetime.fromisoformat((deadline or "").replace("Z", "+00:00"))
        return clock.monotonic() + (at - datetime.now(timezone.utc)).total_seconds()
    except (ValueError, TypeError):  # no time, or one without its zone
        return None


def _release_when_terminated(orders: Orders) -> None:
    """The system ends its processes when the machine goes down: that is a notice too."""

    def release(_number: int, _frame: Optional[FrameType]) -> None:
        # a handler runs in the middle of anything, also of what holds the lock of the orders
        order = Order("release", TAKEN_BACK, urgent=True)
        threading.Thread(target=orders.end, args=(order,), name="signal", daemon=True).start()

    signal.signal(signal.SIGTERM, release)


if __name__ == "__main__":
    sys.exit(main())
