"""`spotferry region add PROVIDER REGION`: each cloud has the options that its settings name."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import click

from cli.errors import Failed, UsageProblem
from cli.given import REGION, STACK
from cli.output import print_json, say
from cli.region_target import RegionParameters, Target
from spotferry.ports.cloud import RegionSettings
from spotferry.providers import registry
from spotferry.providers.opening import Setting, region_settings, settings_of
from spotferry.types.errors import InvalidInput, Misconfigured

_STACK = "from_stack"


class AddGroup(click.Group):
    """A group with a subcommand for each cloud whose regions can be opened.

    Args:
        name: its own.
        where: tells the deployment that is meant.
    """

    def __init__(self, name: str, where: Callable[[], Target]) -> None:
        super().__init__(name, help="Open a region for launches, or change how machines are launched there.")
        self._where = where

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """The clouds."""
        return list(registry.with_part("settings"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        """The command of one cloud."""
        return _command(cmd_name, self._where) if cmd_name in registry.with_part("settings") else None


def _command(provider: str, where: Callable[[], Target]) -> click.Command:
    cloud = settings_of(provider)

    # Any: values of click's options.
    def add(region: str, image: tuple[str, ...], *, as_json: bool, **said: Any) -> None:
        stack = said.pop(_STACK, None)
        given = {key: (value,) if isinstance(value, str) else value or () for key, value in said.items()}
        keys = {_parameter(setting): setting.key for setting in cloud.settings}
        settings = _settings(provider, region, {keys[name]: values for name, values in given.items()}, image)
        home = where()
        parameters = RegionParameters(home)
        if stack is not None:
            settings = _over_stack(settings, parameters.stack_network(stack, region), stack)
        _tell(settings, known=parameters.put(settings), home=home, as_json=as_json)

    options: list[click.Parameter] = [click.Argument(["region"], metavar="REGION", type=REGION)]
    options += [_option(setting) for setting in cloud.settings]
    if provider == "aws":
        options.append(click.Option(["--from-stack", _STACK], metavar="NAME", type=STACK, help=_STACK_HELP))
    image_help = f"ARCH=IMAGE or ARCH/gpu=IMAGE, instead of the newest of the vendor (such as {cloud.image_example})."
    options.append(click.Option(["--image"], multiple=True, metavar="ARCH=IMAGE", help=image_help))
    options.append(click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON document."))
    text = f"Open a region of {provider}, such as {cloud.region_example}; all that was said of it before is replaced."
    return click.Command(provider, callback=add, params=options, help=text)


_STACK_HELP = "Stack of template-region.yaml in that region, whose network is taken; options come over it."


def _parameter(setting: Setting) -> str:
    return setting.option.removeprefix("--").replace("-", "_")


def _option(setting: Setting) -> click.Option:
    metavar = "ZONE=ID" if setting.by_zone else "TEXT"
    names = [setting.option, _parameter(setting)]
    return click.Option(names, multiple=setting.by_zone, metavar=metavar, help=setting.help)


def _settings(
    provider: str, region: str, said: Mapping[str, tuple[str, ...]], images: tuple[str, ...]
) -> RegionSettings:
    try:
        return region_settings(provider, region, said, images)
    except InvalidInput as error:
        raise UsageProblem("\n".join(f"{problem.field}: {problem.message}" for problem in error.problems)) from error
    except Misconfigured as error:
        raise Failed(str(error)) from error


def _over_stack(settings: RegionSettings, output: str, stack: str) -> RegionSettings:
    """The settings with the stack's network below what was said."""
    try:
        network = json.loads(output)
        return RegionSettings(
            provider=settings.provider,
            region=settings.region,
            network={**network, **settings.network},
            image_ids=settings.image_ids,
        )
    except (ValueError, TypeError) as error:
        raise UsageProblem(f"--from-stack: the output Network of {stack} is not what it should be: {error}") from error


def _tell(settings: RegionSettings, *, known: bool, home: Target, as_json: bool) -> None:
    place = f"{settings.provider} {settings.region}"
    if as_json:
        print_json({"settings": settings.model_dump(mode="json"), "changed": known})
    else:
        click.echo(f"{place} is {'changed' if known else 'open'}")
    say(f"The broker knows within a minute. Next: `spotferry region check {place}`, `spotferry catalog refresh`.")
    if settings.provider == "aws" and settings.region == home.home_region and not home.is_local:
        say("This is the home region: the next deployment writes the parameter HomeNetwork over these settings.")
