// The differential flame graph: the shape of one side, coloured by the difference.

class DiffFlame extends BoxTree {
  constructor(data, page) {
    super(data.calls.parent, "Flame graph of the difference", (node) => page.search && this.name(node).toLowerCase().includes(page.search.toLowerCase()));
    this.data = data;
    this.page = page;
    this.side = "new";
    this.nothing = "Nothing of it on this side.";
    const side = choice("Whose shape", [["new", "shape of the new"], ["base", "shape of the base"], ["both", "the larger of both"]], this.side, (value) => {
      this.side = value;
      this.draw();
    });
    section("flame", "Flame graph of the difference", "Width is one side's amount, colour the difference. The base's shape also shows what vanished.").append(...this.below(side));
    this.draw();
  }

  values(node) {
    const values = this.data.calls.values[this.page.metric];
    return values ? { base: values.base[node] || 0, new: values.new[node] || 0, verdict: values.verdict[node] } : { base: 0, new: 0, verdict: 4 };
  }

  // Of both sides' larger one, a caller is at least as wide as what it calls.
  width(node) {
    const values = this.values(node);
    return this.side === "both" ? Math.max(values.base, values.new, this.sum(this.callees(node))) : values[this.side];
  }

  name(node) {
    const { calls, names } = this.data;
    return calls.function[node] < 0 ? "?" : names[calls.function[node]];
  }

  amount(whole) {
    return `${this.page.show(whole)} ${this.page.current.label}`;
  }

  look(node) {
    const { calls, names, verdicts } = this.data;
    const values = this.values(node);
    const sure = !["no evidence", "unknown"].includes(verdicts[values.verdict]);
    const difference = values.new - values.base;
    const larger = Math.max(values.new, values.base) || 1;
    const strength = sure ? 35 + 45 * Math.min(1, Math.abs(difference) / larger) : 14 * Math.min(1, (4 * Math.abs(difference)) / larger);
    const kind = Math.abs(difference) < larger * 0.002 ? "same" : difference > 0 ? "more" : "less";
    const status = values.base === 0 && sure ? "appeared" : values.new === 0 && sure ? "gone" : "";
    const name = this.name(node);
    const about = () => {
      const place = calls.file[node] < 0 ? "" : `${shortPath(names[calls.file[node]])}:${calls.line[node] ?? "?"}`;
      const box = facts(name, [["base", this.page.show(values.base)], ["new", this.page.show(values.new)], ["difference", this.page.showDifference(difference), verdicts[values.verdict]]]);
      if (place) box.append(el("div", { class: "soft code" }, place));
      return box;
    };
    return {
      kind: `${kind} ${status}`,
      label: `${name}: ${this.page.show(values.base)} before, ${this.page.show(values.new)} now, ${verdicts[values.verdict]}`,
      style: { "--strength": `${strength.toFixed(0)}%` },
      about,
    };
  }
}
