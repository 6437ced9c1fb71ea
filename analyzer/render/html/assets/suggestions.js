// Suggestions: a section of all of them, and those of one line where it is opened.

function showSuggestions(state) {
  const { suggestions } = state.data;
  if (!suggestions.length) return;
  const box = section("suggestions", "Suggestions", "Only where a rule is certain.");
  box.append(el("div", { class: "suggestions" }, suggestions.map((each) =>
    el("article", {},
      el("h3", {}, each.file ? placeLink(each.file, each.line, state, { class: "code" }) : "The whole program", el("b", {}, each.figure)),
      suggestionText(each)))));
}

// What happens, what to write instead, and where the documentation shows both.
function suggestionText(each) {
  return [el("p", {}, each.text), el("p", {}, el("b", {}, "Instead: "), `${each.instead}.`), el("p", { class: "code link" }, each.link)];
}

// The suggestions for a line, to be shown beside its figures.
function suggestionsAt(state, file, line) {
  const found = state.data.suggestions.filter((each) => each.file === file && each.line === line);
  return found.length ? el("div", { class: "suggestion" }, found.flatMap(suggestionText)) : null;
}
