"""Modules of the optional dependencies, imported when they are needed."""

from importlib import import_module
from types import ModuleType

from rssc.errors import InputError


def import_extra(module: str, what: str, extra: str = "experiments") -> ModuleType:
    """A module of the optional dependencies.

    Args:
        module: Its name.
        what: What needs it, for the message.
        extra: Of the package, to install it with.

    Raises:
        InputError: It is not installed; says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"{what} needs the module {module}; install it with `pip install 'rssc[{extra}]'`.") from error
