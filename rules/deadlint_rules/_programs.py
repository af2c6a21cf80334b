"""What a command line starts: the program that does the work, what launches it, and whether it ends by itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from deadlint.index.resolve import Resolver
from deadlint.index.values import UNKNOWN, Const, External, Member, Result, Sequence, Template, Value, Values
from deadlint.settings import Settings

HOLE = "\0"  # stands for what is unknown in a word
_NAME = re.compile(r"[\w.+@-]{1,60}( [a-z-]{1,20}){0,2}")


@dataclass(frozen=True, slots=True)
class Command:
    """One thing that a call may start. `program` is the base name, None where it is not known."""

    program: str | None = None
    launcher: str | None = None  # a program in front that stays, with the real one as its child
    shell: bool = False
    several: bool = False  # a shell that runs more than one command
    bounded: bool = False  # ends by itself: `timeout 60 …`, `curl --max-time 30 …`

    @property
    def label(self) -> str:
        """How messages call it."""
        return f"`{self.program}`" if self.program and _NAME.fullmatch(self.program) else "the child"


UNKNOWN_COMMAND = Command()


@dataclass(frozen=True, slots=True)
class Commands:
    """Everything that one call may start; never empty."""

    each: tuple[Command, ...]
    settings: Settings

    @property
    def first(self) -> Command:
        """The one that messages speak of: a long-running one if there is any."""
        return next((c for c in self.each if self._is(c, self.settings.long_running)), self.each[0])

    @property
    def long_running(self) -> bool:
        """Whether one of them is known to run long."""
        return any(self._is(c, self.settings.long_running) for c in self.each)

    @property
    def leaf(self) -> bool:
        """Whether each is a known program without children, started directly."""
        return all(self._alone(c) and self._is(c, self.settings.leaf) for c in self.each)

    @property
    def read_only(self) -> bool:
        """Whether each is a known program that only reads and has no children, started directly."""
        return all(self._alone(c) and self._is(c, self.settings.read_only) for c in self.each)

    @property
    def bounded(self) -> bool:
        """Whether each ends by itself."""
        return all(c.bounded for c in self.each)

    @staticmethod
    def _alone(command: Command) -> bool:
        # GDAL's own programs have no children; its Python scripts (gdal_merge.py, gdal2tiles.py) do.
        return not command.shell and command.launcher is None and not (command.program or "").endswith(".py")

    @staticmethod
    def _is(command: Command, patterns: tuple[str, ...]) -> bool:
        name = command.program
        return name is not None and any(fnmatchcase(name, pattern) for pattern in patterns)


def commands(values: Values, resolver: Resolver, settings: Settings, *, shell: bool) -> Commands:
    """What a call starts whose `args` may be `values`."""
    reader = _Reader(resolver, settings)
    found = [reader.command(each, shell=shell) for value in values for each in _alternatives(value)]
    return Commands(tuple(dict.fromkeys(found)) or (UNKNOWN_COMMAND,), settings)


def words_of(values: Values, resolver: Resolver, settings: Settings) -> Iterator[list[str]]:
    """The words of each command line that an argument list or a shell's text may be, as far as they are known."""
    reader = _Reader(resolver, settings)
    for value in values:
        match value:
            case Const(str()) | Template():
                yield from _simple_commands(_text_of(value))
            case _:
                words = reader._words(value)
                if words:
                    yield words


def _alternatives(value: Value) -> Iterator[Value]:
    """A command line once for each program that its first word may be."""
    match value:
        case Sequence(items=(first, *rest), open=is_open) if len(first) > 1:
            texts = any(isinstance(v, Result) and v.name == "builtins.str" for v in first)
            for program in first:
                if not (texts and program == UNKNOWN):  # `str(…)` is unknown besides
                    yield Sequence(((program,), *rest), is_open)
        case _:
            yield value


@dataclass(frozen=True, slots=True)
class _Launcher:
    """How to step over a program that starts another: options that take a value, and arguments of its own."""

    forks: bool
    valued: tuple[str, ...] = ()
    own: int = 0


# Programs that put themselves in front of another. What `forks` is measured: `timeout` and `sudo` stay and wait,
# `nice` and `env` become the program.
_LAUNCHERS = {
    "nice": _Launcher(False, ("-n", "--adjustment")),
    "ionice": _Launcher(False, ("-c", "-n", "--class", "--classdata")),
    "nohup": _Launcher(False),
    "stdbuf": _Launcher(False, ("-i", "-o", "-e")),
    "taskset": _Launcher(False, (), 1),
    "chrt": _Launcher(False, (), 1),
    "exec": _Launcher(False),
    "command": _Launcher(False),
    "env": _Launcher(False, ("-u", "-C", "--unset", "--chdir")),
    "timeout": _Launcher(True, ("-s", "-k", "--signal", "--kill-after"), 1),
    "gtimeout": _Launcher(True, ("-s", "-k", "--signal", "--kill-after"), 1),
    "sudo": _Launcher(True, ("-u", "-g", "-h", "-p", "-C", "--user", "--group")),
    "doas": _Launcher(True, ("-u", "-C")),
    "time": _Launcher(True, ("-f", "-o")),
    "xvfb-run": _Launcher(True, ("-n", "-s", "-e", "-f", "-p", "-w", "--server-num", "--server-args")),
    "setsid": _Launcher(True),
    "flock": _Launcher(True, ("-w", "-E", "--timeout"), 1),
    "unbuffer": _Launcher(True),
    "catchsegv": _Launcher(True),
}
# Programs that start another one somewhere behind options that we do not know: it is looked for by name.
_DISTANT = frozenset(
    {
        "docker", "podman", "singularity", "apptainer", "udocker", "kubectl", "srun", "mpirun", "mpiexec", "conda",
        "mamba", "micromamba", "uv", "uvx", "poetry", "pipenv", "pixi", "hatch", "npx", "ssh", "sshpass", "su",
        "chroot", "parallel", "xargs", "strace", "systemd-run", "docker-compose", "bsub", "qsub", "sbatch",
    }
)  # fmt: skip
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_BUILTINS = frozenset({"cd", "export", "set", "source", ".", "echo", "umask", "ulimit", "trap", "true", "unset"})
_OPERATORS = frozenset({";", "|", "&", "&&", "||", "|&", "(", ")", ";;"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


@dataclass(frozen=True, slots=True)
class _Reader:
    resolver: Resolver
    settings: Settings
    depth: int = 0

    def _deeper(self) -> _Reader | None:
        """For what an argument of a call may be: `x = str(x)` in a loop has no end."""
        return replace(self, depth=self.depth + 1) if self.depth < 4 else None

    def command(self, value: Value, *, shell: bool) -> Command:
        words = self._words(value)
        if words is None:
            return replace(UNKNOWN_COMMAND, shell=shell)
        if shell and isinstance(value, Const | Template):
            return self._script(_text_of(value))
        if shell:
            # `sh -c first rest…`: only the first word is the script.
            return self._script(words[0]) if words else replace(UNKNOWN_COMMAND, shell=True)
        if isinstance(value, Const | Template) and len(words) > 1:
            words = [_text_of(value)]  # without a shell the whole text is the name of the program
        return self._line(words)

    # --- words ---------------------------------------------------------------------------------------------

    def _words(self, value: Value) -> list[str] | None:
        match value:
            case Sequence(items=items):
                return [self._text(item) for item in items]
            case Const(str()) | Template():
                return _split(_text_of(value))
            case Result(name="shlex.split" | "builtins.map", call=call, scope=scope) if call and call.args and scope:
                deeper = self._deeper()
                if deeper is not None:
                    return deeper._words(self.resolver.evaluate(call.args[-1], scope)[0])
            case External() | Result() | Member():
                text = self._text((value,))
                return [text] if text.strip(HOLE) else None
        return None

    def _text(self, values: Values) -> str:
        """The text of one word, with holes for what is not known."""
        found = [self._of(value) for value in values]
        return next((text for text in found if text.strip(HOLE)), HOLE)

    def _of(self, value: Value) -> str:
        match value:
            case Const(str()) | Template():
                return _text_of(value)
            case Const(value=int() | float() as number):
                return str(number)
            case External(name="sys.executable"):
                return "python"
            case Result(name=name, call=call, scope=scope) if call is not None and scope is not None and call.args:
                inner, deeper = _PATHS.get(name), self._deeper()
                if inner is None or deeper is None:
                    return HOLE
                argument = call.args[inner] if -len(call.args) <= inner < len(call.args) else call.args[0]
                text = deeper._text(self.resolver.evaluate(argument, scope))
                return f"{HOLE}/{text}" if name == "os.path.join" else text
            case Member(name=name, receiver=receiver) if name.startswith("pathlib."):
                return self._of(receiver)
        return HOLE

    # --- lines ---------------------------------------------------------------------------------------------

    def _script(self, text: str) -> Command:
        """What a shell does with `text`."""
        parts = [self._line(words) for words in _simple_commands(text)]
        parts = [p for p in parts if p.program not in _BUILTINS] or parts
        if not parts:
            return replace(UNKNOWN_COMMAND, shell=True)
        known = Commands(tuple(parts), self.settings)
        if re.search(r"(?<!&)&\s*$", text):
            return replace(parts[0], shell=True, several=True, bounded=True)  # left in the background
        several = len(parts) > 1 or len(list(_simple_commands(text))) > 1
        return replace(known.first, shell=True, several=several, bounded=known.bounded)

    def _line(self, words: list[str]) -> Command:
        """What the words of one command start."""
        launcher: str | None = None
        bounded = False
        while words:
            name = _base(words[0])
            if name is None or (_ASSIGNMENT.match(words[0]) and len(words) == 1):
                return Command(None, launcher, bounded=bounded)
            if _ASSIGNMENT.match(words[0]):
                words = words[1:]
            elif name in _SHELLS and any(re.fullmatch(r"-[a-z]*c", w) for w in words[1:3]):
                return self._inner_shell(words, launcher, bounded)
            elif name in _LAUNCHERS and len(words) > 1:
                form = _LAUNCHERS[name]
                rest = _behind(words[1:], form)
                bounded = bounded or (name.endswith("timeout") and _has_duration(words, rest))
                launcher = name if form.forks else launcher
                words = rest
            elif name in _DISTANT:
                inner = self._distant(words[1:])
                own = _ends_by_itself(name, words[1:])
                return Command(inner or name, (launcher or name) if inner else launcher, bounded=bounded or own)
            elif name == "python" and len(words) > 1:
                return Command(_python(words), launcher, bounded=bounded)
            else:
                bounded = bounded or _ends_by_itself(name, words[1:])
                return Command(_with_subcommand(name, words[1:]), launcher, bounded=bounded)
        return Command(None, launcher, bounded=bounded)

    def _inner_shell(self, words: list[str], launcher: str | None, bounded: bool) -> Command:
        place = next(i for i, w in enumerate(words) if i and re.fullmatch(r"-[a-z]*c", w))
        script = self._script(words[place + 1]) if place + 1 < len(words) else UNKNOWN_COMMAND
        return replace(script, launcher=launcher, shell=True, bounded=bounded or script.bounded)

    def _distant(self, words: list[str]) -> str | None:
        """The first known program among the words behind a launcher whose options are not known."""
        patterns = (*self.settings.long_running, *self.settings.leaf, *self.settings.read_only)
        for word in words:
            for part in [word, *(_split(word) if " " in word else ())]:
                name = _base(part)
                if name and not part.startswith("-") and any(fnmatchcase(name, p) for p in patterns):
                    return name
        return None


# Calls that lead to a path or a text, and which of their arguments ends it.
_PATHS = {
    "shutil.which": 0, "distutils.spawn.find_executable": 0, "os.path.join": -1, "os.path.abspath": 0,
    "os.path.realpath": 0, "os.path.expanduser": 0, "os.path.normpath": 0, "os.fspath": 0, "pathlib.Path": -1,
    "pathlib.PurePath": -1, "os.environ.get": 1, "os.getenv": 1, "shlex.quote": 0, "builtins.str": 0,
}  # fmt: skip


def _text_of(value: Const | Template) -> str:
    return value.text(HOLE) if isinstance(value, Template) else str(value.value)


def _base(word: str) -> str | None:
    """The base name of a program; None where it is not known."""
    name = re.split(r"[\\/]", word)[-1].strip()
    if name.startswith(HOLE):
        name = name.lstrip(HOLE)
    if not name or HOLE in name:
        return None
    name = re.sub(r"\.(exe|bat|cmd)$", "", name, flags=re.IGNORECASE)
    return "python" if re.fullmatch(r"(python|pypy)[0-9.]*", name) else name


# The groups of GDAL's one program, whose next word is the command.
_GROUPS = frozenset({"raster", "vector", "mdim", "dataset", "vsi", "driver"})


def _with_subcommand(name: str, words: list[str]) -> str:
    """`gdal raster convert`: what `gdal` does is in its next words."""
    if name != "gdal" or not words or not re.fullmatch(r"[a-z-]+", words[0]) or words[0].startswith("-"):
        return name
    several = words[0] in _GROUPS and len(words) > 1 and re.fullmatch(r"[a-z][a-z-]*", words[1]) is not None
    return " ".join([name, *words[: 2 if several else 1]])


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _simple_commands(text: str) -> Iterator[list[str]]:
    """The commands of a shell script, one list of words each; redirections left out."""
    try:
        lexer = shlex.shlex(text.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        tokens = list(lexer)
    except ValueError:
        tokens = text.split()
    words: list[str] = []
    skip = False
    for token in tokens:
        if token in _OPERATORS:
            if words:
                yield words
            words = []
        elif token and set(token) <= set("<>&"):
            skip = True
            if words and words[-1].isdigit():
                words.pop()  # the number of a file descriptor
        elif skip:
            skip = False
        else:
            words.append(token)
    if words:
        yield words


def _behind(words: list[str], form: _Launcher) -> list[str]:
    """The words behind a launcher's options and its own arguments."""
    own = form.own
    while words:
        word = words[0]
        if word in form.valued:
            words = words[2:]
        elif (word.startswith("-") and word != "-") or _ASSIGNMENT.match(word):
            words = words[1:]
        elif own:
            own -= 1
            words = words[1:]
        else:
            break
    return words


def _has_duration(words: list[str], rest: list[str]) -> bool:
    """Whether coreutils' `timeout` has a limit: 0 is none."""
    duration = words[len(words) - len(rest) - 1]
    return len(rest) < len(words) - 1 and not re.fullmatch(r"0+(\.0*)?[smhd]?", duration)


def _python(words: list[str]) -> str:
    """The module or script that an interpreter runs."""
    for i, word in enumerate(words[1:], 1):
        if word == "-m" and i + 1 < len(words):
            return words[i + 1]
        if word == "-c":
            break
        if not word.startswith("-"):
            return _base(word) or "python"
    return "python"


def _option(*names: str) -> Callable[[list[str]], bool]:
    """Whether one of the options is there, alone, joined to its value, or last in a cluster (`-sm 5`)."""

    def present(words: list[str]) -> bool:
        for name in names:
            for word in words:
                if word == name or word.startswith(f"{name}="):
                    return True
                if not name.startswith("--") and re.match(rf"-[A-Za-z]*{name[1]}[\d.{HOLE}]*$", word):
                    return True
        return False

    return present


def _counted(words: list[str]) -> bool:
    """`-n 3` is a count on Windows; elsewhere `-n` takes no number."""
    return "-n" in words[:-1] and words[words.index("-n") + 1].isdigit()


# What bounds a program from its own command line, for as long as it runs: not its connection or a pause between
# bytes, as `curl --connect-timeout`, `wget --timeout` (per read, and 20 tries) and `ssh -o ConnectTimeout` do.
_OWN_LIMITS: dict[str, Callable[[list[str]], bool]] = {
    "curl": _option("-m", "--max-time"),
    "ping": lambda words: _option("-w", "-c")(words) or _counted(words),
    "ping6": _option("-w", "-c"),
    "arping": _option("-w", "-c"),
    "fping": lambda _: True,
    "aria2c": _option("--stop"),
    "rsync": _option("--stop-after", "--time-limit"),
    "sleep": lambda words: bool(words) and "inf" not in words[0],
    "kill": lambda _: True,
    "pkill": lambda _: True,
    "killall": lambda _: True,
    "pg_isready": lambda _: True,  # 3 s unless told otherwise
    "kubectl": lambda words: bool(words) and words[0] in ("wait", "rollout") and _option("--timeout")(words),
    "systemd-run": lambda words: any("RuntimeMaxSec=" in word for word in words),
}


def _ends_by_itself(name: str, words: list[str]) -> bool:
    limit = _OWN_LIMITS.get(name)
    return limit is not None and limit(words)


__all__ = ["HOLE", "UNKNOWN_COMMAND", "Command", "Commands", "commands", "words_of"]
