"""`spotferry instances` and `destroy`."""

import sys

import click

from cli.api import broker
from cli.errors import UsageProblem
from cli.given import ID
from cli.job_paths import instance_path
from cli.output import duration, hourly, money, place, print_json, print_table, text


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def instances(*, as_json: bool) -> None:
    """List the machines that are there now."""
    answer = broker().request("GET", "/instances")
    if as_json:
        print_json(answer)
        return
    found = answer["instances"]
    if not found:
        click.echo("no machines")
        return
    heads = ("INSTANCE", "JOB", "CLOUD'S ID", "MACHINE", "STATE", "TOTAL/H", "TIME", "COST")
    rows = [
        (
            str(machine["instance_id"]),
            text(machine.get("job_id")),
            text(machine.get("allocated_id")),
            place(machine),
            text(machine.get("state") or machine.get("phase")),
            hourly(machine),
            duration(machine.get("seconds")),
            money(machine.get("cost_usd")),
        )
        for machine in found
    ]
    print_table(heads, rows)


@click.command()
@click.argument("instance_id", metavar="INSTANCE", type=ID)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def destroy(instance_id: str, *, yes: bool, as_json: bool) -> None:
    """End one machine; a job that runs on it goes on elsewhere from its last checkpoint."""
    if not yes:
        if not sys.stdin.isatty():
            raise UsageProblem("--yes: is needed where nobody can be asked")
        if not click.confirm(f"End machine {instance_id}?", err=True):
            return
    answer = broker().request("POST", instance_path(instance_id, "destroy"), repeatable=True)
    if as_json:
        print_json(answer)
        return
    machine = answer["instance"]
    click.echo(f"{machine['instance_id']} is on its way out ({text(machine.get('state'))})")
