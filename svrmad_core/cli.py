"""The command line: ``python -m svrmad_core run | replay | compare | resume | show | verify | export``."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from pydantic import ValidationError

from . import engine, export, words
from .answers import warm_up
from .comparison import NotPaired, Row, compare, family_of
from .debate import Debate, fold
from .panels import Panel, PanelError, panel_for
from .protocols import VARIANTS, variant_of, variant_title
from .recording import Recorder, Recording, RecordingError, load, new_run_id, runs_folder, verify
from .records import Problem, Settings
from .secrets import public_base

SAMPLES = Path(__file__).resolve().parent.parent / "sample_runs"
OK, FAILED, WRONG_USE = 0, 1, 2
ALL = "all"
"""As a protocol of ``replay``: every one but the recording's own."""

_SETTINGS = {
    "agents",
    "challengers",
    "tau",
    "quorum",
    "prior",
    "prior_scale",
    "score",
    "round_mode",
    "memory",
    "neighbours",
    "group_size",
    "summaries",
    "exit_variant",
    "exit_signal",
    "exit_threshold",
    "exit_confidence",
    "accept_after",
    "max_rounds",
    "max_links",
    "max_tokens_total",
    "max_cost",
    "temperature",
    "seed",
    "max_tokens",
    "timeout",
}
_BUDGETS = ("max_rounds", "max_links", "max_tokens_total", "max_cost")
_FORMATS = ("html", "csv", "graphml", "png", "svg")
_PICTURES = ("graph", "scores", "slope", "flow")


class WrongUse(Exception):
    """Something the user can put right; one sentence."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_USE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Returns
    -------
    int
        0; 1 for a run without an answer or a failed check; 2 for wrong use.
    """
    args = _parser().parse_args(argv)
    try:
        return args.command(args)
    except (WrongUse, RecordingError, PanelError) as error:
        print(f"{args.prog}: {error}", file=sys.stderr)
        return WRONG_USE
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(p) for p in first["loc"]).replace("_", "-")
        print(f"{args.prog}: {where or 'input'}: {first['msg']}", file=sys.stderr)
        return WRONG_USE
    except OSError as error:
        print(f"{args.prog}: {error.filename or 'file'}: {error.strerror or error}", file=sys.stderr)
        return WRONG_USE
    except BrokenPipeError:
        return OK


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m svrmad_core", description="Run, replay, show and check multi-agent debates.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    run = _command(commands, "run", _run, "run a debate on a question and record it")
    run.add_argument("question", metavar="QUESTION")
    _problem_options(run)
    _run_options(run, default_protocol="svr_mad")

    replay = _command(commands, "replay", _replay, "run other protocols from a recording's initial answers")
    replay.add_argument("recording", metavar="RECORDING", help="a file, or the name of a run")
    _run_options(replay, default_protocol="all_to_all", several=True)

    beside = _command(commands, "compare", _compare, "compare runs from the same initial answers, one row a protocol")
    beside.add_argument(
        "recordings",
        metavar="RECORDING",
        nargs="+",
        help="files, or names of runs; of a single one, all runs from its initial answers are compared",
    )
    beside.add_argument("--json", action="store_true", help="print one JSON object")

    resume = _command(commands, "resume", _resume, "go on with an interrupted run")
    resume.add_argument("recording", metavar="RECORDING", help="a file, or the name of a run")
    _panel_options(resume)
    resume.add_argument("--json", action="store_true", help="print one JSON object")

    show = _command(commands, "show", _show, "print the state of a run after K events")
    show.add_argument("recording", metavar="RECORDING", help="a file, or the name of a run")
    show.add_argument("--step", type=int, metavar="K", help="after the first K events (default: all)")
    show.add_argument("--json", action="store_true", help="print one JSON object")

    check = _command(commands, "verify", _verify, "check that the protocol would have decided the same")
    check.add_argument("recording", metavar="RECORDING", help="a file, or the name of a run")
    check.add_argument("--json", action="store_true", help="print one JSON object")

    export = _command(commands, "export", _export, "write a recording as a page, tables, a graph or a picture")
    export.add_argument("recording", metavar="RECORDING", help="a file, or the name of a run")
    export.add_argument(
        "--to",
        required=True,
        choices=_FORMATS,
        help="html: one page with the run's outcome; csv: four tables; graphml: the graph for Gephi and the like; "
        "png, svg: a picture (needs Chrome or Chromium)",
    )
    export.add_argument("out", metavar="OUT", type=Path, help="a file; for csv a folder, or a name ending in .zip")
    export.add_argument("--step", type=int, metavar="K", help="after the first K events (default: all; not for html)")
    export.add_argument("--picture", choices=_PICTURES, help="what a png or svg shows (default: graph)")
    export.add_argument("--dark", action="store_true", help="light on dark: html, png, svg")
    export.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _command(commands: Any, name: str, function: Any, text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    command.set_defaults(command=function, prog=f"python -m svrmad_core {name}")
    return command


def _problem_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kind", choices=("math", "choice", "text"), help="how answers are compared (default: math)")
    parser.add_argument("--choices", nargs="+", metavar="TEXT", help="the options A, B, C ...; implies --kind choice")
    parser.add_argument("--reference", metavar="ANSWER", help="the right answer; no agent sees it")


def _panel_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        action="append",
        metavar="ID",
        help="a LiteLLM model id or simulated/easy, simulated/hard, simulated/hallucination; "
        "several are dealt to the agents in turn",
    )
    parser.add_argument("--api-base", metavar="URL", help="where an OpenAI-compatible server listens")
    parser.add_argument("--temperature", type=float, metavar="T")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="completion tokens of one call (default: 4096)")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="of one attempt of a call (default: 120)")


def _run_options(parser: argparse.ArgumentParser, default_protocol: str, several: bool = False) -> None:
    _panel_options(parser)
    more = "; give it several times to run several at once, or 'all'" if several else ""
    parser.add_argument(
        "--protocol",
        action="append" if several else "store",
        choices=(*VARIANTS, ALL) if several else tuple(VARIANTS),
        default=None if several else default_protocol,
        metavar="NAME",
        help=f"{', '.join(VARIANTS)} (default: {default_protocol}{more})",
    )
    parser.add_argument("--agents", type=int, metavar="N", help="(default: 6)")
    parser.add_argument("--challengers", type=int, metavar="S", help="at most so many a round (default: 3)")
    parser.add_argument("--tau", type=float, help="accept above this survival rate (default: 0.5)")
    parser.add_argument("--quorum", type=int, metavar="N", help="agents for consensus (default: 0.8 of them)")
    parser.add_argument("--prior", choices=("confidence", "perplexity", "min_logprob", "uniform"))
    parser.add_argument("--prior-scale", choices=("probability", "rank"))
    parser.add_argument("--score", choices=("svr", "prior", "beta"), help="what agents are ranked by (default: svr)")
    parser.add_argument("--round-mode", choices=("sequential", "parallel"))
    parser.add_argument("--memory", choices=("full", "last"))
    parser.add_argument("--accept-after", choices=("round", "debate"))
    parser.add_argument("--neighbours", type=int, metavar="K", help="sparse: hear so many on the ring (default: 2)")
    parser.add_argument("--group-size", type=int, metavar="N", help="group_debate (default: 3)")
    parser.add_argument("--summaries", action="store_const", const=True, help="group_debate: groups hear summaries")
    parser.add_argument("--exit-variant", choices=("per_agent", "gate_first"), help="sid_et")
    parser.add_argument("--exit-signal", choices=("max", "mean", "q90", "q95", "q99"), help="sid_et: of the token NLLs")
    parser.add_argument("--exit-threshold", type=float, metavar="NATS", help="sid_et: leave at or below")
    parser.add_argument("--exit-confidence", type=float, metavar="P", help="sid_et: without log-probabilities")
    parser.add_argument("--max-rounds", type=int, metavar="N")
    parser.add_argument("--max-links", type=int, metavar="N")
    parser.add_argument("--max-tokens-total", type=int, metavar="N")
    parser.add_argument("--max-cost", type=float, metavar="USD")
    parser.add_argument("--seed", type=int, metavar="N", help="agent i is asked with seed N + i - 1")
    parser.add_argument("--out", metavar="FOLDER", help="(default: SVRMAD_RUNS_DIR, else runs)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _run(args: argparse.Namespace) -> int:
    if not args.model:
        raise WrongUse("say who answers: --model ID (a LiteLLM id, or simulated/hard to try without a model)")
    kind = args.kind or ("choice" if args.choices else "math")
    problem = Problem(question=args.question, kind=kind, choices=args.choices or [], reference=args.reference or None)
    protocol, settings = _variant(args, args.protocol, Settings())
    panel = _panel(args.model, settings)
    run_id = new_run_id(protocol)
    with Recorder(runs_folder(args.out) / f"{run_id}.jsonl") as recorder:
        events = engine.run(problem, protocol, panel, settings, recorder=recorder, run_id=run_id)
        return _drive([_Run(events, panel, recorder.path)], args)


def _replay(args: argparse.Namespace) -> int:
    parent = load(find(args.recording))
    first = parent.started
    # budgets belong to the run they were set for: a paired run gets only those it is given
    base = first.settings.model_copy(update=dict.fromkeys(_BUDGETS))
    if args.agents is not None and args.agents != base.agents:
        raise WrongUse(f"the recording has {base.agents} agents, and a paired run takes over their answers")
    names = list(dict.fromkeys(args.protocol or ["all_to_all"]))
    if ALL in names:
        own = variant_of(first.protocol, first.settings)
        names = [name for name in VARIANTS if name != own]
    with ExitStack() as files:
        runs = []
        for name in names:
            protocol, settings = _variant(args, name, base)
            panel = _panel(args.model or [a.model for a in first.agents], settings)
            run_id = new_run_id(protocol)
            recorder = files.enter_context(Recorder(runs_folder(args.out) / f"{run_id}.jsonl"))
            events = engine.run(
                first.problem, protocol, panel, settings, recorder=recorder, run_id=run_id, parent=parent
            )
            title = variant_title(protocol, settings) if len(names) > 1 else ""
            runs.append(_Run(events, panel, recorder.path, title=title))
        return _drive(runs, args)


def _variant(args: argparse.Namespace, name: str, base: Settings) -> tuple[str, Settings]:
    """The protocol of a variant, and the settings: the base's, the variant's, then those given one by one."""
    variant = VARIANTS[name]
    return variant.protocol, _settings(args, base.model_copy(update=dict(variant.settings)))


def _resume(args: argparse.Namespace) -> int:
    path = find(args.recording)
    recording = load(path)
    if not recording.interrupted:
        raise WrongUse(f"the run {recording.run_id} is finished; there is nothing to resume")
    first = recording.started
    settings = _settings(args, first.settings)
    models = args.model or [a.model for a in first.agents]
    agents = [a.model_copy(update={"model": models[i % len(models)]}) for i, a in enumerate(first.agents)]
    recording.events[0] = first.model_copy(update={"settings": settings, "agents": agents})
    panel = _panel(models, settings)
    with Recorder(path, keep=recording.good_bytes) as recorder:
        events = engine.resume(recording, panel, recorder=recorder)
        return _drive([_Run(events, panel, path, recording.events)], args)


def _settings(args: argparse.Namespace, base: Settings) -> Settings:
    given = {k: v for k, v in vars(args).items() if k in _SETTINGS and v is not None}
    if args.api_base:
        try:
            given["api_base"] = public_base(args.api_base)
        except ValueError as error:
            raise WrongUse(str(error)) from None
    return Settings.model_validate(base.model_dump() | given)


def _panel(models: list[str], settings: Settings) -> Panel:
    try:
        panel = panel_for(models, settings)
    except ValueError as error:
        raise WrongUse(str(error)) from None
    if not panel.simulated:
        warm_up()
    return panel


class _Run(NamedTuple):
    """A run to be driven to its end."""

    events: AsyncIterator[Any]
    panel: Panel
    path: Path
    known: Sequence[Any] = ()
    """What is recorded already."""
    title: str = ""
    """Stands before its lines, where several run at once."""


def _drive(runs: list[_Run], args: argparse.Namespace) -> int:
    """Run all to the end, at the same time, with progress on stderr; then print what came of them."""

    async def together() -> list[Debate]:
        return list(await asyncio.gather(*(_follow(run) for run in runs)))

    try:
        debates = asyncio.run(together())
    except KeyboardInterrupt:
        for run in runs:
            print(f"Interrupted. Go on with: python -m svrmad_core resume {run.path}", file=sys.stderr)
        return FAILED
    summaries = [_summary(debate, run.path) for debate, run in zip(debates, runs, strict=True)]
    if args.json:
        several = [
            {"method": variant_of(debate.protocol, debate.settings), **summary}
            for debate, summary in zip(debates, summaries, strict=True)
        ]
        print(json.dumps(summaries[0] if len(runs) == 1 else {"runs": several}, ensure_ascii=False))
    else:
        for debate, run, summary in zip(debates, runs, summaries, strict=True):
            print(f"\n{run.title}" if run.title else "", end="\n" if run.title else "")
            _print_summary(debate, summary)
    return OK if all(summary["answer"] is not None for summary in summaries) else FAILED


async def _follow(run: _Run) -> Debate:
    debate = fold(run.known) if run.known else None
    before = f"{run.title}: " if run.title else ""
    async with aclosing(run.events) as stream:  # type: ignore[type-var]
        async for event in stream:
            before_words = debate
            if debate is None:
                debate = fold([event])
                told = words.tell(None, event, debate)
            elif event.event in ("receiver_chosen", "run_finished"):
                told = words.tell(before_words, event, debate)
                debate.apply(event)
            else:
                debate.apply(event)
                told = words.tell(None, event, debate)
            line = f"{told.title}  [{told.formula}]" if told.formula else told.title
            print(before + line, file=sys.stderr, flush=True)
            if event.event == "turn_failed":
                print(f"  {event.message}", file=sys.stderr, flush=True)
    close = getattr(run.panel, "aclose", None)
    if close is not None:
        await close()
    assert debate is not None
    return debate


def _summary(debate: Debate, path: Path) -> dict[str, Any]:
    assert debate.verdict is not None
    totals = debate.totals()
    return {
        "answer": debate.verdict.answer,
        "reason": debate.verdict.reason,
        "agent": debate.verdict.agent,
        "votes": {debate.beliefs[b]: n for b, n in debate.verdict.votes.items()},
        "links": totals.links,
        "calls": totals.calls,
        "prompt_tokens": totals.prompt_tokens,
        "completion_tokens": totals.completion_tokens,
        "cost": totals.cost,
        "rounds": totals.rounds,
        "recording": str(path),
    }


def _print_summary(debate: Debate, summary: dict[str, Any]) -> None:
    totals = debate.totals()
    answer = summary["answer"] if summary["answer"] is not None else "none"
    by = f" ({summary['agent']})" if summary["agent"] else ""
    print(f"answer     {answer}")
    print(f"reason     {summary['reason']}{by}")
    if summary["votes"]:
        print(f"votes      {', '.join(f'{a}: {n}' for a, n in summary['votes'].items())}")
    print(f"links      {totals.links} in {totals.rounds} rounds")
    print(f"calls      {totals.calls}" + (f", {totals.failed} failed" if totals.failed else ""))
    unknown = f" ({totals.calls_without_usage} calls told no usage)" if totals.calls_without_usage else ""
    print(f"tokens     {totals.tokens} ({totals.prompt_tokens} + {totals.completion_tokens}){unknown}")
    print(f"cost       {'unknown' if totals.cost is None else f'{totals.cost:.4f} USD'}")
    print(f"recording  {summary['recording']}")


def find(name: str) -> Path:
    """A recording by its path, or by its run's name in the own or the sample runs.

    Raises
    ------
    WrongUse
        If there is none.
    """
    path = Path(name)
    if path.is_file():
        return path
    for folder in (runs_folder(), SAMPLES):
        candidate = folder / f"{name}.jsonl"
        if "/" not in name and "\\" not in name and candidate.is_file():
            return candidate
    raise WrongUse(f"there is no recording {name!r}, neither a file nor a run in {runs_folder()} or sample_runs")


def _compare(args: argparse.Namespace) -> int:
    paths = [find(name) for name in args.recordings]
    runs: list[list[Any]] = [load(path).events for path in paths]
    if len(runs) == 1:
        runs = family_of(runs[0], (paths[0].resolve().parent, runs_folder(), SAMPLES))
    try:
        rows = compare(runs)
    except NotPaired as error:
        raise WrongUse(str(error)) from None
    problem = runs[0][0].problem
    if args.json:
        found = {"question": problem.question, "reference": problem.reference, "rows": [r.as_dict() for r in rows]}
        print(json.dumps(found, ensure_ascii=False))
        return OK
    print(problem.question + (f"  (reference: {problem.reference})" if problem.reference else ""))
    for line in _columns([_titles(), *(_cells(r) for r in rows)]):
        print(line)
    if any(r.simulated for r in rows):
        print("Simulated: no model was asked.")
    return OK


def _titles() -> tuple[str, ...]:
    head = ("protocol", "answer", "right", "by", "links", "calls", "prompt", "completion", "of all-to-all", "cost")
    return (*head, "rounds", "seconds", "critical path")


def _cells(r: Row) -> tuple[str, ...]:
    answer = "-" if r.answer is None else " ".join(r.answer.split())
    return (
        r.title,
        answer if len(answer) <= 24 else f"{answer[:23]}…",
        {True: "yes", False: "no", None: "-"}[r.right],
        words.REASON_WORDS.get(r.reason or "", r.reason or "interrupted"),
        str(r.links),
        str(r.calls),
        f"{r.prompt_tokens:,}",
        f"{r.completion_tokens:,}",
        "-" if r.tokens_ratio is None else f"{r.tokens_ratio:.0%}",
        "unknown" if r.cost is None else f"{r.cost:.4f}",
        str(r.rounds),
        f"{r.seconds:.1f}",
        f"{r.critical_path:.1f}",
    )


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as aligned lines: the first four columns are text, the others numbers."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            c.ljust(w) if i < 4 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _show(args: argparse.Namespace) -> int:
    recording = load(find(args.recording))
    count = len(recording.events)
    k = _step(args, count)
    debate = recording.fold(k)
    state = _state(debate, k, count)
    if args.json:
        print(json.dumps(state, ensure_ascii=False))
        return OK
    for notice in recording.notices:
        print(notice, file=sys.stderr)
    event = recording.events[k - 1]
    told = words.tell(recording.fold(k - 1) if k > 1 else None, event, debate)
    print(debate.problem.question)
    print(
        f"{variant_title(debate.protocol, debate.settings)}"
        f"{', simulated' if debate.started.simulated else ''}, step {k} of {count}: {told.title}"
    )
    if told.formula:
        print(told.formula)
    print(f"\n{'agent':<7}{'prior':>7}{'D':>4}{'r':>4}{'c':>4}{'SVR':>7}{'score':>7}  answer")
    for row in state["agents"]:
        print(
            f"{row['agent']:<7}{_cell(row['prior']):>7}{row['D']:>4}{row['r']:>4}{row['c']:>4}"
            f"{_cell(row['SVR']):>7}{_cell(row['score']):>7}  "
            f"{row['answer'] if row['answer'] is not None else row['failed'] or '-'}"
        )
    print(
        f"\nlinks: {len(state['links'])}",
        *(f"  round {x['round']}: {x['challenger']} -> {x['receiver']} {x['outcome']}" for x in state["links"]),
        sep="\n",
    )
    if state["verdict"]:
        v = state["verdict"]
        print(f"verdict: {v['answer']} ({v['reason']}{', ' + v['agent'] if v['agent'] else ''})")
    return OK


def _step(args: argparse.Namespace, count: int) -> int:
    """The step asked for; all if none is."""
    k = count if args.step is None else args.step
    if not 1 <= k <= count:
        raise WrongUse(f"--step {k}: the recording has steps 1 to {count}")
    return k


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _state(debate: Debate, k: int, count: int) -> dict[str, Any]:
    return {
        "run_id": debate.started.run_id,
        "protocol": debate.protocol,
        "simulated": debate.started.simulated,
        "step": k,
        "steps": count,
        "agents": [
            {
                "agent": s.name,
                "model": s.agent.model,
                "answer": s.answer,
                "belief": s.belief,
                "prior": s.prior if s.turns else None,
                "prior_signal": s.prior_signal,
                "D": s.debates,
                "r": s.retained,
                "c": s.changed,
                "SVR": s.svr,
                "score": debate.score(s.name) if s.turns else None,
                "failed": s.failure.message if s.failure else None,
            }
            for s in debate.agents.values()
        ],
        "links": [
            {
                "round": link.round,
                "challenger": link.challenger,
                "receiver": link.receiver,
                "outcome": {True: "retained", False: "changed", None: "void"}[link.retained],
            }
            for link in debate.links
        ],
        "totals": debate.totals().model_dump(),
        "verdict": debate.verdict.model_dump() if debate.verdict else None,
    }


def _verify(args: argparse.Namespace) -> int:
    path = find(args.recording)
    try:
        recording: Recording = load(path)
        departure = verify(recording)
    except RecordingError as error:
        print(f"{args.prog}: {error}", file=sys.stderr)
        return FAILED
    if args.json:
        found = {"event": departure.seq, "message": departure.message} if departure else None
        print(json.dumps({"run_id": recording.run_id, "events": len(recording.events), "departs": found}))
    elif departure is None:
        for notice in recording.notices:
            print(notice, file=sys.stderr)
        print(f"{recording.run_id}: the protocol decides the same in all {len(recording.events)} events")
    if departure is not None:
        print(f"{args.prog}: departs at event {departure.seq}: {departure.message}", file=sys.stderr)
        return FAILED
    return OK


def _export(args: argparse.Namespace) -> int:
    drawn = args.to in ("png", "svg")
    if args.picture and not drawn:
        raise WrongUse(f"--picture is for png and svg, not for {args.to}")
    if args.dark and args.to in ("csv", "graphml"):
        raise WrongUse(f"--dark is for html, png and svg, not for {args.to}")
    if args.step is not None and args.to == "html":
        raise WrongUse("--step is not for html, which shows the whole run")
    recording = load(find(args.recording))
    k = _step(args, len(recording.events))
    out: Path = args.out
    if args.to == "csv":
        _check_tables(out)
        written = export.to_csv(recording.events[:k], out)
    else:
        _check_file(out, args.to)
        if args.to == "graphml":
            data = export.graphml(recording.events, k)
        else:
            takeaway = _takeaway(args.to)
            try:
                if drawn:
                    data = takeaway.picture(recording, args.picture or "graph", k, args.to, dark=args.dark)
                else:
                    data = takeaway.html(recording, dark=args.dark)
            except takeaway.NoBrowser as error:
                raise WrongUse(str(error)) from None
        out.write_bytes(data)
        written = [out]
    if args.json:
        print(json.dumps({"wrote": [str(path) for path in written]}, ensure_ascii=False))
        return OK
    for notice in recording.notices:
        print(notice, file=sys.stderr)
    print(f"wrote {', '.join(str(path) for path in written)}")
    return OK


def _check_tables(out: Path) -> None:
    if out.suffix.lower() == ".zip":
        _check_file(out, "zip")
    elif out.exists() and not out.is_dir():
        raise WrongUse(f"{out} is a file; give a folder for the four tables, or a name ending in .zip")


def _check_file(out: Path, kind: str) -> None:
    """Say before the work is done that its file could not be written."""
    if out.is_dir():
        raise WrongUse(f"{out} is a folder; give the {kind} file a name")
    if not out.parent.is_dir():
        raise WrongUse(f"there is no folder {out.parent} to write {out.name} in")


def _takeaway(kind: str) -> Any:
    """What the pages draw with; it is not part of the core, and heavy."""
    try:
        from pages.components import takeaway
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "pages":
            raise WrongUse(
                f"{kind} is drawn by the app's pages, which are not here: run this in the folder that holds app.py"
            ) from None
        raise WrongUse(f"{kind} needs the package {error.name}: pip install -r requirements.txt") from None
    return takeaway
