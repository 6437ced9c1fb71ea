// The flame graph of a fleet: the call tree by functions over all recordings.

class FleetFlame extends BoxTree {
  constructor(data, page) {
    super(data.flame.parent, "Flame graph", (node) => page.search && `${this.name(node)} ${this.file(node)}`.toLowerCase().includes(page.search.toLowerCase()));
    this.data = data;
    this.nothing = "Nothing of it was recorded.";
    const measures = [["cpu", "CPU"], ["wait", "waiting, all threads"]].filter(([name]) => this.of(name, this.callees(-1)) > 0);
    this.measure = measures.length ? measures[0][0] : "cpu";
    const picks = choice("What the graph shows", measures, this.measure, (name) => {
      this.measure = name;
      this.zoom(-1);
    });
    section("flame", "Flame graph", "Of all recordings. Width is the amount; callers stand above what they call. Click to look closer, Escape to go back.").append(...this.below(picks));
    this.draw();
  }

  of(measure, nodes) {
    return nodes.reduce((sum, node) => sum + (this.data.flame[measure][node] || 0), 0);
  }

  width(node) {
    return this.data.flame[this.measure][node] || 0;
  }

  file(node) {
    const { flame, names } = this.data;
    return flame.file[node] < 0 ? "" : names[flame.file[node]];
  }

  name(node) {
    const { flame, names } = this.data;
    const name = flame.name[node] < 0 ? "?" : names[flame.name[node]];
    return name === "<module>" && flame.file[node] >= 0 ? `<module> ${shortPath(this.file(node))}` : name;
  }

  amount(whole) {
    return `${seconds(whole)} ${this.measure === "cpu" ? "CPU" : "waiting, all threads"}`;
  }

  look(node) {
    const { flame, of } = this.data;
    const [name, file, folded] = [this.name(node), this.file(node), flame.folded[node]];
    const own = this.width(node) - this.sum(this.callees(node));
    const whole = this.sum(this.callees(-1));
    const about = () => {
      const rows = [["with calls", seconds(this.width(node)), `${percent(this.width(node) / whole) || "<0.1"} %`], ["of that its own", seconds(Math.max(0, own)), `${percent(own / whole) || "0"} %`]];
      if (flame.recordings[node] !== null) rows.push(["recordings", count(flame.recordings[node]), `of ${count(of)}`]);
      if (folded) rows.push(["boxes that are too small", count(folded), ""]);
      const box = facts(name, rows);
      if (file) box.append(el("div", { class: "soft code" }, file));
      return box;
    };
    return {
      kind: folded ? "special" : /^(site-packages|python)\//.test(file) ? "other" : "own",
      label: `${name}, ${percent(this.width(node) / whole) || "0"} %, ${seconds(this.width(node))}`,
      style: this.measure === "wait" ? { "--hue": "var(--wait)" } : {},
      about,
    };
  }
}
