"""The command's front: global options, and the subcommands, each loaded when it is called."""

from dataclasses import replace
from pathlib import Path

import click

from cli.errors import INTERRUPTED
from cli.lazy import load
from cli.settings import Settings
from spotferry import __version__

COMMANDS = {
    "submit": ("cli.submit", "Hand in a job file and its work directory."),
    "plan": ("cli.plan", "Show which machine a job would get, and why."),
    "list": ("cli.jobs", "List jobs."),
    "show": ("cli.jobs", "Show one job: its machines, costs and history."),
    "logs": ("cli.logs", "Print what a job prints."),
    "cancel": ("cli.jobs", "Stop a job."),
    "retry": ("cli.jobs", "Run a held or finished job again."),
    "checkpoint": ("cli.checkpoints", "Have a running job checkpointed."),
    "restore": ("cli.checkpoints", "Go on from a checkpoint of a finished job."),
    "download": ("cli.download", "Fetch a job's outputs."),
    "checkpoints": ("cli.checkpoints", "List a job's checkpoints."),
    "cost": ("cli.cost", "Show what jobs cost."),
    "instances": ("cli.machines", "List machines."),
    "destroy": ("cli.machines", "End one machine."),
    "catalog": ("cli.catalog", "Prices: refresh, show, import, compare."),
    "region": ("cli.region", "Launch regions: add, list, check, remove."),
    "local": ("cli.local_cloud", "The cloud on a laptop: up, down, status, interrupt."),
}
"""Each subcommand's module and its line in the help; the module holds it under its name, `list` as `list_jobs`."""


class LazyGroup(click.Group):
    """A group that imports a subcommand only to run it, and ends with 130 on Ctrl-C."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """All names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        """The subcommand, imported now."""
        if cmd_name not in COMMANDS:
            return None
        command = load(COMMANDS[cmd_name][0], "list_jobs" if cmd_name == "list" else cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click's signature)
        """The help's list of subcommands, written from the table so that none is imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, click.Abort):
            click.echo(err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="spotferry")
@click.option("--url", envvar="SPOTFERRY_URL", default="", help="The broker's address [env: SPOTFERRY_URL].")
@click.option(
    "--auth",
    envvar="SPOTFERRY_AUTH",
    type=click.Choice(["auto", "none", "iam", "token"]),
    default="auto",
    help="How to sign in: as an AWS identity (iam), by the token in SPOTFERRY_TOKEN, or not [env: SPOTFERRY_AUTH].",
)
@click.option(
    "--state-dir",
    envvar="SPOTFERRY_STATE_DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the local cloud [env: SPOTFERRY_STATE_DIR; default: the nearest .spotferry upwards].",
)
@click.pass_context
def main(ctx: click.Context, url: str, auth: str, state_dir: Path | None) -> None:
    """Run jobs on the cheapest spot machines, and carry them on when a cloud takes its machine back.

    Without --url the local cloud is spoken to, if one runs. Exit status: 0 all went well, 1 it failed, 2 the input is
    wrong, 130 Ctrl-C.
    """
    given = ctx.obj if isinstance(ctx.obj, Settings) else Settings()
    ctx.obj = replace(given, url=url, auth=auth, local_state_dir=state_dir or given.local_state_dir)


if __name__ == "__main__":
    main()
