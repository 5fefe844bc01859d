"""What the script of a Python job imports, found by parsing files. Nothing of them runs.

A part of the preload process's program: preload.py, which follows this text, has Refusal and the
other functions that are used here.
"""
import ast
import os
from importlib.machinery import PathFinder


def script_imports(state):
    """For --preload=auto: the installed packages that the script imports at its top level."""
    try:
        path = script_file(state.command)
        tree = ast.parse(read_file(path), path)
    except (OSError, SyntaxError, ValueError) as error:
        raise Refusal("", "the script's imports cannot be read: " + one_line(error),
                      "script") from None
    names = []
    for name in top_level_imports(tree.body):
        if name not in names and is_installed(root_of(name)):
            names.append(name)
    if not names:
        raise Refusal("", "the script imports no installed package", "unneeded")
    return names


def script_file(command):
    if command[2] != "-m":
        script = command[2]
        return os.path.join(script, "__main__.py") if os.path.isdir(script) else script
    place, path = None, ""
    for name in command[3].split("."):
        spec = PathFinder.find_spec(name, place)
        if spec is None:
            raise OSError("there is no module " + command[3])
        place, path = spec.submodule_search_locations, spec.origin
    if place:
        return os.path.join(list(place)[0], "__main__.py")
    return path


def top_level_imports(body):
    for node in body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0 and node.module:
                for alias in node.names:
                    yield node.module + ("" if alias.name == "*" else ":" + alias.name)
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            for part in ("body", "orelse", "finalbody"):
                yield from top_level_imports(getattr(node, part, []))


def is_installed(name):
    """Whether it lies in a folder of installed packages: not the user's own, nor Python's."""
    try:
        spec = PathFinder.find_spec(name)
    except (ImportError, ValueError):
        return False
    if spec is None:
        return False
    return lies_in_packages(spec)


def lies_in_packages(spec):
    places = list(spec.submodule_search_locations or []) + [spec.origin or ""]
    return any("/site-packages/" in place or "/dist-packages/" in place for place in places)


# ------------------------------------------------------------------------------- --preload=MODULE


class Search:
    """Whether a script may import one of the modules: itself, through its local files, or through
    installed packages, which may import anything. What cannot be decided counts as an import:
    the workers then wait for the preload."""

    FILES_MAX = 1000

    def __init__(self, modules):
        import importlib.util
        self.find_spec = importlib.util.find_spec
        self.wanted = {name.partition(".")[0] for name in modules}
        self.library = os.path.dirname(os.path.realpath(os.__file__)) + "/"
        self.seen = set()
        self.left = []  # files to read, each with the package that it belongs to

    def add(self, path, package):
        if path not in self.seen:
            self.seen.add(path)
            self.left.append((path, package))

    def finds_one(self):
        while self.left:
            if len(self.seen) > self.FILES_MAX:
                return True
            path, package = self.left.pop()
            if any(self.is_hit(node, package) for node in ast.walk(ast.parse(read_file(path)))):
                return True
        return False

    def is_hit(self, node, package):
        if isinstance(node, ast.Import):
            return any(self.look_at(alias.name) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join(parts[:len(parts) - node.level + 1] + ([base] if base else []))
            return any(self.look_at(base + "." + alias.name) for alias in node.names)
        if isinstance(node, ast.Call):  # of a name that only the run can show
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            return called in ("__import__", "import_module")
        return False

    def look_at(self, name):
        """True: this may import a module that is searched. Adds the files of a local one."""
        root = name.partition(".")[0]
        if root in self.wanted:
            return True
        spec = self.find_spec(root)  # imports nothing, because the name has no dot
        if spec is None or spec.origin in ("built-in", "frozen"):
            return False
        if lies_in_packages(spec):
            return True
        if not os.path.realpath(spec.origin or "").startswith(self.library):
            self.add_files(spec, name.split("."))
        return False

    def add_files(self, spec, parts):
        """For a.b.c: of the packages a and a.b, and of c, unless that is no module."""
        for at in range(1, len(parts) + 1):
            places = list(spec.submodule_search_locations or [])
            if spec.origin:
                self.add(spec.origin, ".".join(parts[:at] if places else parts[:at - 1]))
            if not places or at == len(parts):
                return
            spec = PathFinder.find_spec(".".join(parts[:at + 1]), places)
            if spec is None:
                return


def may_import(state):
    """Whether the script may import one of the modules that --preload names."""
    try:
        search = Search(state.modules)
        path = script_file(state.command)
        package = ""
        if state.command[2] == "-m":
            is_package = os.path.basename(path) == "__main__.py"
            package = state.command[3] if is_package else state.command[3].rpartition(".")[0]
        if package and search.look_at(package):
            return True
        search.add(path, package)
        return search.finds_one()
    except Exception:  # it cannot be read or parsed: an archive, stdin, an error in it
        return True
