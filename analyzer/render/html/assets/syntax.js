// Colours for Python's source text, line by line: comments, strings, numbers, keywords, names that are defined.
//
// A line stands alone where its neighbours are not known: inside of a string of several lines it is shown as code. Of
// whole files such strings are followed (`strings`).

const KEYWORDS = new Set(("False None True and as assert async await break class continue def del elif else except finally for from global "
  + "if import in is lambda nonlocal not or pass raise return try while with yield match case").split(" "));

const TOKENS = /(#.*$)|((?:\b[rbfuRBFU]{1,2})?(?:"""|'''))|((?:\b[rbfuRBFU]{1,2})?(?:"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?))|(\b\d[\w.]*)|([^\W\d]\w*)/gu;

// The pieces of a line as [kind, text], and the quotes of a string that goes on in the next one, or null.
function codePieces(text, inside = null) {
  const found = [];
  let place = 0;
  const upTo = (end, kind) => {
    if (end > place) found.push([kind, text.slice(place, end)]);
    place = end;
  };
  const endString = (quotes, from) => {
    const end = text.indexOf(quotes, from);
    upTo(end < 0 ? text.length : end + 3, "string");
    return end < 0 ? quotes : null;
  };
  if (inside) {
    inside = endString(inside, 0);
    if (inside) return [found, inside];
  }
  let before = "";
  TOKENS.lastIndex = place;
  for (let match = TOKENS.exec(text); match; match = TOKENS.exec(text)) {
    const [token, comment, opening, string, numeral] = match;
    upTo(match.index, null);
    if (opening) {
      inside = endString(opening.slice(-3), match.index + opening.length);
      TOKENS.lastIndex = place;
      if (inside) break;
      continue;
    }
    const kind = comment ? "comment" : string ? "string" : numeral ? "numeral" : KEYWORDS.has(token) ? "keyword" : /^(def|class)$/.test(before) ? "defined" : null;
    before = token;
    upTo(match.index + token.length, kind);
  }
  upTo(text.length, null);
  return [found, inside];
}

const coloured = ([found]) => found.map(([kind, text]) => (kind ? el("span", { class: `code-${kind}` }, text) : text));

// By number of line the quotes of the string that it begins in, for lines that follow one another.
function strings(lines) {
  const open = new Map();
  let inside = null;
  let previous = null;
  for (const [number, text] of lines) {
    if (previous !== null && number !== previous + 1) inside = null;
    if (inside) open.set(number, inside);
    [, inside] = codePieces(text, inside);
    previous = number;
  }
  return open;
}
