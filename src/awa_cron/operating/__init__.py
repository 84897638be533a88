"""What an operator does: look at schedules, queues and jobs, and act on them; the verbs of an entered client."""

from awa_cron.operating.figures import FigureVerbs
from awa_cron.operating.insight import InsightVerbs
from awa_cron.operating.jobs import JobVerbs
from awa_cron.operating.keeping import KeepingVerbs
from awa_cron.operating.schedules import ScheduleVerbs
from awa_cron.operating.timeline import TimelineVerbs

__all__ = ["FigureVerbs", "InsightVerbs", "JobVerbs", "KeepingVerbs", "ScheduleVerbs", "TimelineVerbs"]
