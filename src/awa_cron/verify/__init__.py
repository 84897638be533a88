"""Whether what happened is a behaviour of the spec: the event log, the rows and the jobs are checked against it.

    instants  when a definition fires, a day at a time
    state     what the log says about a row
    rules     whether an event may follow: pauses, edits, removals, triggers
    choices   the rules about fires
    books     what became of each due instant
    checker   the verdict on one schedule
    findings  collects what is wrong, and folds what is alike
    reader    reads a database for it

All but the reader is pure, and works as well on events from elsewhere.
"""

from awa_cron.verify.checker import Checker
from awa_cron.verify.reader import verify
from awa_cron.verify.verdict import Account, Finding, Verdict

__all__ = ["Account", "Checker", "Finding", "Verdict", "verify"]
