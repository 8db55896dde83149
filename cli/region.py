"""`spotferry region`: the regions that machines are launched in."""

from dataclasses import dataclass
from datetime import UTC, datetime

import click

from cli.errors import UsageProblem
from cli.given import REGION
from cli.output import print_json, print_table, say
from cli.region_add import AddGroup
from cli.region_target import RegionParameters, Target, target
from cli.settings import settings
from spotferry.ports.cloud import RegionSettings
from spotferry.providers.opening import CheckContext, Finding, Level, build_check
from spotferry.types import PROVIDER_NAMES
from spotferry.types.errors import Misconfigured


@dataclass(frozen=True, slots=True)
class Asked:
    """What was said of the deployment."""

    deployment: str
    home_region: str

    def target(self) -> Target:
        """The deployment that is meant."""
        return target(settings(), self.deployment, self.home_region)


KEY = "cli.region"
"""Of `Asked` in the context of the command."""


@click.group()
@click.option(
    "--deployment",
    envvar="SPOTFERRY_DEPLOYMENT",
    default="",
    help="The deployment's name, unless it is `spotferry` or the local one [env: SPOTFERRY_DEPLOYMENT].",
)
@click.option("--home-region", default="", help="Where it was deployed, unless --url or AWS_REGION tells.")
@click.pass_context
def region(ctx: click.Context, deployment: str, home_region: str) -> None:
    """Open, list, check and close the regions that machines are launched in.

    Works with your own AWS credentials on the deployment's parameters; without --url and --deployment on the local
    cloud that runs here. The broker takes a change in within a minute.
    """
    ctx.meta[KEY] = Asked(deployment, home_region)


def _target() -> Target:
    asked: Asked = click.get_current_context().meta[KEY]
    return asked.target()


region.add_command(AddGroup("add", _target))


@region.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_regions(*, as_json: bool) -> None:
    """List the regions that are open."""
    found = list(RegionParameters(_target()).all())
    regions = [item for item in found if isinstance(item, RegionSettings)]
    damaged = [item for item in found if isinstance(item, str)]
    if as_json:
        print_json({"regions": [item.model_dump(mode="json") for item in regions], "damaged": damaged})
    elif not regions:
        click.echo("no region is open")
    else:
        print_table(
            ("PROVIDER", "REGION", "NETWORK", "IMAGES"),
            [
                (item.provider, item.region, _pairs(item.network) or "default", _pairs(item.image_ids))
                for item in regions
            ],
        )
    for name in damaged:
        say(f"{name} cannot be read, and nothing is placed until it is mended: add the region anew, or remove it")


def _pairs(pairs: object) -> str:
    assert isinstance(pairs, dict)
    return " ".join(f"{key}={value}" for key, value in sorted(pairs.items()))


@region.command()
@click.argument("provider", type=click.Choice(PROVIDER_NAMES))
@click.argument("name", metavar="REGION", type=REGION)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def check(provider: str, name: str, *, as_json: bool) -> None:
    """Ask the cloud whether what a region was set up with is there and would launch.

    It asks with your own credentials for that cloud. Exit status 1 when something keeps machines from starting.
    """
    where = _target()
    found = RegionParameters(where).get(provider, name)
    with where.in_force():
        findings = _findings(where, found)
    problems = [finding for finding in findings if finding.level is Level.PROBLEM]
    if as_json:
        listed = [{"level": finding.level.value, "what": finding.what} for finding in findings]
        print_json({"provider": provider, "region": name, "ok": not problems, "findings": listed})
    else:
        for finding in findings:
            click.echo(f"{finding.level.value:8} {finding.what}")
    click.get_current_context().exit(1 if problems else 0)


def _findings(where: Target, found: RegionSettings) -> list[Finding]:
    context = CheckContext(
        deployment=where.deployment,
        home_region="" if where.is_local else where.home_region,  # the local bus is one for all regions
        clock=lambda: datetime.now(UTC),
        secret=RegionParameters(where).secret,
    )
    try:
        return list(build_check(found.provider, context)(found))
    except Misconfigured as error:
        return [Finding(Level.PROBLEM, str(error))]


@region.command()
@click.argument("provider", type=click.Choice(PROVIDER_NAMES))
@click.argument("name", metavar="REGION", type=REGION)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def remove(provider: str, name: str, *, as_json: bool) -> None:
    """Launch nothing in a region any more; machines that run there go on, and are ended when their jobs are."""
    removed = RegionParameters(_target()).delete(provider, name)
    if as_json:
        print_json({"provider": provider, "region": name, "removed": removed})
    elif not removed:
        raise UsageProblem(f"REGION: {provider} {name} is not set up")
    else:
        click.echo(f"{provider} {name} is closed")
