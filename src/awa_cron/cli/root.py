"""The group of verbs, and what an error becomes: one line on stderr and an exit status."""

from __future__ import annotations

from typing import Any

import asyncpg
import click

from awa_cron.cli import audit, demonstrate, explaining, jobs, keeping, look, operate, run, schema, ui
from awa_cron.cli.failure import status
from awa_cron.errors import AwaCronError

RIGHTS = (
    "; of the roles of `awa-cron grants`, PREFIX_read may do what only looks, PREFIX_purge what purges; all else "
    "is the owner's"
)


class Verbs(click.Group):
    """A group that keeps the order of its verbs and reports our errors without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the verbs in the order in which people meet them."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb, or a group's; turn an error of ours into its line and status."""
        try:
            return super().invoke(ctx)
        except AwaCronError as error:
            said = " ".join(str(error).split())
            if isinstance(error.__cause__, asyncpg.InsufficientPrivilegeError):
                said += RIGHTS
            raise status(error)(said) from error


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="awa-cron", message="%(version)s")
def root() -> None:
    """Periodic jobs for Postgres that cannot lose a fire or make it twice.

    Exit status: 0 done, 1 failed, 2 used wrongly, 3 no such schedule or job, 4 not checked (verify).

    Names are completed in the shell: eval "$(_AWA_CRON_COMPLETE=bash_source awa-cron)", or zsh_source, fish_source.
    """


for verb in (
    schema.migrate,
    schema.grants,
    run.run,
    look.list_,
    look.show,
    look.next_,
    look.history,
    explaining.explain,
    audit.verify,
    operate.pause,
    operate.resume,
    operate.trigger,
    operate.cancel,
    operate.remove,
    jobs.queue,
    jobs.dead,
    keeping.purge,
    ui.ui,
    demonstrate.demo,
):
    root.add_command(verb)
