"""What the page says of each benchmark. Figures of results are not here: they come from the data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """A benchmark on the page: its name in the results, a title, the paper's place, and how it is measured."""

    benchmark: str
    title: str
    source: str
    text: str


REPEATED_WORK = Section(
    "redundancy",
    "Repeated work of native code",
    "PieProf (ESEC/FSE 2021), figures 4 and 5 and table 2",
    "Programs of scikit-learn's and numexpr's benchmarks, a network in NumPy, programs of the paper's table 2, and the "
    "oracle's: bare, bare again (the noise floor), and with `--redundancy` for loads and stores together and each "
    "alone. They run side by side, in turns of a tenth of a second; ratios are of CPU time in the same turn, over the "
    "mean of both bare arms, medians with 95 % intervals. The paper's programs took 1.16 to 1.52 times the memory. In "
    "detail also table 2: the speed-up of the rewritten function, here and in the paper, the place and category of the "
    "finding, and the CPU time of the repetitions before, and after for as much work: of 15 s, or of 45 s where the "
    "finding is not beyond doubt before.",
)
REPETITIONS = Section(
    "repetitions",
    "Repeated work: programs that were not in the paper",
    "the five categories of PieProf (ESEC/FSE 2021), section 3.1",
    "Programs of the paper's five categories in forms of their own, with NumPy, pandas, SciPy, scikit-learn, Pillow "
    "and C, each with a corrected twin, and innocent programs that read the same tables and matrices again and again: "
    "8 s of CPU time each. *Found*: the first finding is on the line that repeats the work. *At least* is the lower "
    "end of what is reported, *of* the line's whole CPU time.",
)
LEARNED_CALLS = Section(
    "learned_calls",
    "Calls that are watched",
    "Paikana (Palkar et al.), figures 1 and 2",
    "The HTML of a flame graph is read into a tree of objects, as in the paper: sampled, with `loop()` around the "
    "lines, with `--calls` by racing and by Successive Rejects, and under cProfile. *CPU time*: side by side, in turns "
    "of a quarter of a second; ratios in the same turn, medians over sets of processes, with 95 % intervals. *KL* is "
    "Kullback and Leibler's divergence of the own times of nine functions: from a clock marked by hand, and from "
    "cProfile less its own cost (known from empty calls, on some versions far too much). The paper has 1.05 and 0.04 "
    "to 0.05 for itself, 1.5 for cProfile. In detail: the ten programs of table 1 and nine that do little but call.",
)
COUNTED_CALLS = Section(
    "counted_calls",
    "Numbers of calls",
    "",
    "Programs that count their own calls: threads, a pool, tasks, generators, bursts, phases, recursion, calls by C "
    "code, one beside native threads. Each runs bare, with `--calls`, and under profilers that trace every call; of "
    "functions with at least 20 calls. *Inside*: of the 95 % intervals that have both ends, those that hold the truth. "
    "*Told*: the number itself is told, which it is not where the interval spans a factor of four; *half width* is "
    "half of the interval, and *error* how far the number is from the truth, medians of the functions. *CPU* is CPU "
    "time over the bare run's, the median of programs. In detail: each function. Functions of one program are wrong "
    "together, so one run tells less than its number of functions.",
)

SECTIONS = (
    Section(
        "overhead",
        "Overhead",
        "Scalene (OSDI 2023), tables 1 and 3, figures 7 and 8",
        "Ten pyperformance programs, repeated until the bare program takes three seconds. Every round runs each "
        "program once in every arm; a ratio is taken within a round. `bare again` is the noise floor. tachograph takes "
        "part in every round, the other profilers in the first one. Those that trace, or follow every allocation, run "
        "a third of the passes and are compared with a bare run of as many; profiling.sampling is compared with a bare "
        "run of Python 3.15. A run over 60 seconds (30 for a third of the passes) is over the bound; a profiler over "
        "the bound with one program of async_tree is not tried with the other three, and one over it with the first "
        "two kinds of programs with no more. *Fastest* is the ratio of the fastest runs: noise only makes runs slower. "
        "*CPU* is CPU time of the program, *command* the wall-clock time of all that the profiler does, *memory added* "
        "the growth of the program's own peak.",
    ),
    Section(
        "side_by_side",
        "Recorded and bare, side by side",
        "",
        "Bare and recorded processes of each program run side by side, in turns of a quarter of a second: the ten "
        "programs, and four whose time is in native code. CPU time of the whole process, with the recorder's own "
        "thread, over that of the bare one in the same turn: medians over sets of processes, with 95 % intervals. *No "
        "paths* is without native call paths.",
    ),
    Section(
        "on_and_off",
        "A running recording, on and off",
        "",
        "One process is recorded and paused in turns of 40 ms: three loops of Python, and the programs of *Native call "
        "paths*. CPU time of the main thread, recorded over paused: medians of hundreds of comparisons, with 95 % "
        "intervals; then the CPU time of the recorder's own thread, the most of the loops. Start-up, the end, and the "
        "cost of being loaded are not in it.",
    ),
    Section(
        "allocation",
        "Loops that only allocate or copy",
        "",
        "The worst programs for a recorder of memory.",
    ),
    Section(
        "scaling",
        "As the program grows",
        "",
        "The same work by more threads, in deeper stacks, with other block sizes, and in more processes. The other "
        "profilers take part in the first round.",
    ),
    Section(
        "native_paths",
        "Native call paths",
        "",
        "First the unwinder alone, for one walk: one after another (warm) and each out of cold caches. Then, of one "
        "recording of each program (ten seconds, `--short` three): the CPU time of a sample in the handler, with paths "
        "and without, the frames of a path, and kinds of paths. Then programs whose time is in native code, recorded "
        "with native call paths (the default) and without, beside the profilers that take native frames too. Where the "
        "load was above the number of CPUs only CPU time compares, and differences above that of the second bare run.",
    ),
    REPEATED_WORK,
    REPETITIONS,
    LEARNED_CALLS,
    COUNTED_CALLS,
    Section(
        "cpu_accuracy",
        "Function bias",
        "Scalene (OSDI 2023), figure 5",
        "Two functions compute the same, one of them with a call in its loop. Reported minus true share of the "
        "calling one, in percentage points; in brackets, how far the profiler itself moved the truth.",
    ),
    Section(
        "line_accuracy",
        "Time by line",
        "",
        "Python, a built-in, an operator, a method, a library, a thread, and a blocked read, each on lines of its own "
        "whose CPU time the program measures itself, in the same run. Percent of the time; *misplaced* is time on the "
        "wrong line, *moved* how far the run differs from the bare one, by the profiler and by noise (see the second "
        "bare run).",
    ),
    Section(
        "native_share",
        "Python and native time",
        "Scalene (arXiv 2020), section 3.1",
        "Programs that are native for 0 to 100 % of their time, in calls of less than a millisecond: the reported "
        "share, and in brackets what was measured in the same run.",
    ),
    Section(
        "delay",
        "The delay estimator, simulated",
        "Scalene (arXiv 2020), figure 3",
        "Estimated over simulated time. Native code in long phases, as in the paper, and in phases of a millisecond.",
    ),
    Section(
        "samplers",
        "The delay estimator on real programs",
        "",
        "The ten programs, recorded by the delay of signals (`--sampler signal`) and by the program counter.",
    ),
    Section(
        "memory_accuracy",
        "How large is an array?",
        "Scalene (OSDI 2023), figure 6",
        "512 MB, of which 0 to 100 % is touched. Error of the reported size.",
    ),
    Section(
        "live_bytes",
        "Small objects by line",
        "",
        "Millions of floats, strings, tuples and dicts, by line, against tracemalloc. Error of the reported bytes.",
    ),
    Section(
        "sampling_rate",
        "Threshold and rate-based samples",
        "Scalene (OSDI 2023), table 2",
        "Both counted in the same recording.",
    ),
    Section(
        "copy_volume",
        "Copies",
        "",
        "Lines that copy known numbers of bytes. Error of the reported volume.",
    ),
    Section(
        "leak_detection",
        "Leaks",
        "Scalene (OSDI 2023), section 3.4",
        "Four programs leak 20 MB per second for three seconds, six allocate as much and leak nothing. For memray, a "
        "line of which a megabyte is left at the end counts as reported.",
    ),
    Section(
        "analyze",
        "Analyzing large recordings",
        "",
        "Synthetic recordings, analyzed on two cores, each in a process of its own.",
    ),
    Section(
        "reading",
        "From a recording to a report",
        "",
        "The same program, recorded for longer and longer; then the commands that make a report. Memory is the largest "
        "resident set, at least that of the benchmark that starts the command, some 80 MB.",
    ),
)
