"""How busy the GPUs were over time, and the memory in use."""

from __future__ import annotations

from matplotlib.figure import Figure

from ...report_data.numbers import percent, size
from ...report_data.report_data import ReportData
from .palette import GPU, INK, MEMORY
from .style import heading, new_figure

MAX_DEVICES = 4
GB = 1e9


def draw_gpu(data: ReportData) -> Figure | None:
    """The figure, of the GPUs that the program used; None if GPUs were not read, or told nothing."""
    gpu, totals = data.profile.gpu, data.profile.totals
    if gpu is None or gpu.timeline.empty:
        return None
    figure, axes = new_figure(3.2)
    memory = axes.twinx()
    used = gpu.devices[gpu.devices["used"]] if gpu.devices["used"].any() else gpu.devices
    for place, device in enumerate(used["device"].head(MAX_DEVICES)):
        mine = gpu.timeline[gpu.timeline["device"] == device]
        busy, held = mine[mine["busy_share"].notna()], mine[mine["memory_bytes"].notna()]
        axes.fill_between(
            busy["time_s"],
            busy["busy_share"] * 100,
            step="pre",
            color=GPU,
            alpha=0.75 / (1 + place),
            linewidth=0,
            label="GPU busy" if len(used) == 1 else f"GPU {device} busy",
        )
        memory.plot(
            held["time_s"], held["memory_bytes"] / GB, color=MEMORY, linewidth=1.3, label="memory in use, right"
        )
    start, end = data.bins.start_s, data.bins.end_s
    axes.set_xlim(start, end)
    axes.set_ylim(0, 100)
    memory.set_ylim(0)
    axes.set_xlabel("seconds")
    axes.set_ylabel("% of the time")
    memory.set_ylabel("GB")
    memory.tick_params(colors=INK)
    handles = [axes.get_legend_handles_labels(), memory.get_legend_handles_labels()]
    lines, labels = handles[0][0] + handles[1][0][:1], handles[0][1] + handles[1][1][:1]
    figure.legend(lines, labels, loc="outside lower left", ncols=3, prop={"size": 7.5})
    busy_text = "?" if totals.gpu_share is None else f"{percent(totals.gpu_share) or '0'} % busy"
    peak = "" if totals.gpu_peak_bytes is None else f", {size(round(totals.gpu_peak_bytes))} of its memory at most"
    heading(axes, "What the GPU did", f"{busy_text}{peak}")
    return figure
