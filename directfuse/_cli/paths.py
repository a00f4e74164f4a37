"""`directfuse paths`: where the installed files are, for compilers and scripts."""

import click

from directfuse import _paths
from directfuse._cli._output import json_option, print_json, print_table

__all__ = ["paths"]

_PLACES = {
    "library": _paths.library,
    "plugin-library": _paths.plugin_library,
    "include": _paths.include_dir,
    "pkgconfig": _paths.pkgconfig_dir,
}


@click.command()
@click.argument("name", required=False, type=click.Choice(list(_PLACES)))
@json_option
def paths(name: str | None, as_json: bool) -> None:
    """Tell where the libraries, the C header and the pkg-config files are.

    \b
    Examples:
      export PKG_CONFIG_PATH=$(directfuse paths pkgconfig)
      gcc app.c -o app $(pkg-config --cflags --libs directfuse)
      gcc -shared -fPIC fs.c -o fs.so $(pkg-config --cflags --libs directfuse-plugin)
    """
    places = {key: str(place()) for key, place in _PLACES.items() if name in (None, key)}
    if as_json:
        print_json(places)
    elif name is not None:
        click.echo(places[name])
    else:
        print_table(["Name", "Path"], list(places.items()))
