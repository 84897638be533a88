"""Cron expressions: what they mean, and the instants at which they fire in a time zone.

Pure functions of their arguments: nothing here reads a clock.

    fields     the text of one field to its values
    dialect    the text of an expression to a validated `CronExpression`
    wallclock  the wall times that an expression matches; no zones
    zones      zone names, and the instants at which a zone's clock changes
    fires      wall times to instants: the rule for clock changes
"""

from awa_cron.cronexpr.dialect import CronExpression, parse
from awa_cron.cronexpr.fires import due_fires, latest_due, next_fires, previous_fires
from awa_cron.cronexpr.zones import clock_change, zone

__all__ = [
    "CronExpression",
    "clock_change",
    "due_fires",
    "latest_due",
    "next_fires",
    "parse",
    "previous_fires",
    "zone",
]
