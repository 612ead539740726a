"""Compiled code lives in `rssc.kernels`, nothing there depends on the rest of the package, and names hide no module."""

import ast
from collections.abc import Iterator
from pathlib import Path

import rssc

ROOT = Path(rssc.__file__).parent
KERNELS = "rssc.kernels"


def modules() -> Iterator[tuple[str, str]]:
    """Name and source of every module of the package."""
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path.read_text()


def imports(source: str) -> set[str]:
    """Full names of what a module imports, anywhere in it; a.b for `from a import b`."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that layers can be read"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def inside(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def test_only_kernels_are_compiled():
    compiled = {
        module: found
        for module, source in modules()
        if not inside(module, KERNELS)
        and (found := {name for name in imports(source) if inside(name, "numba") or inside(name, f"{KERNELS}.jit")})
    }
    assert not compiled, "move their compiled functions to rssc.kernels"


def test_kernels_import_only_kernels():
    outside = {
        module: found
        for module, source in modules()
        if inside(module, KERNELS)
        and (found := {name for name in imports(source) if inside(name, "rssc") and not inside(name, KERNELS)})
    }
    assert not outside, "kernels take arrays and know nothing of the package above them"


def test_functions_of_the_package_hide_no_module():
    names = {module.split(".")[1] for module, _ in modules() if module != "rssc"}
    assert not names & set(rssc.__all__)
