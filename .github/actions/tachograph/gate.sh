#!/usr/bin/env bash
# Compares two revisions, writes the answer where people see it, and ends with the exit status of `tachograph compare`.
# All input comes by the variables GATE_* (action.yml). The recordings stay in tachograph-gate/ for an artifact.
set -euo pipefail

MARK='<!-- tachograph -->'
OUTPUT=tachograph-gate

fail() {
  echo "tachograph: $1" >&2
  exit 2
}

[ -n "${GATE_COMMAND:-}" ] || fail "no command: set 'command', such as 'python bench.py'"
[ -n "${GATE_BASE:-}" ] || fail "no base: set 'base' to the revision to compare with"
git rev-parse --quiet --verify "$GATE_BASE^{commit}" > /dev/null ||
  fail "the base $GATE_BASE is not there: check out with fetch-depth: 0"

mapfile -d '' -t command < <(python3 -c 'import shlex, sys; print(*shlex.split(sys.argv[1]), sep="\0", end="\0")' "$GATE_COMMAND")

status=0
tachograph compare --base "$GATE_BASE" --new "${GATE_NEW:-HEAD}" --effect "${GATE_EFFECT:-3%}" --time "${GATE_TIME:-5m}" \
  --output "$OUTPUT" --json "$OUTPUT.json" -- "${command[@]}" || status=$?
[ -s "$OUTPUT.json" ] || exit "$status" # it could not compare, and has said why

verdict=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["verdict"])' "$OUTPUT.json")
{
  echo "$MARK"
  tachograph diff "$OUTPUT" --markdown -
} > "$OUTPUT.md"
[ -z "${GITHUB_OUTPUT:-}" ] || echo "verdict=$verdict" >> "$GITHUB_OUTPUT"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$OUTPUT.md" >> "$GITHUB_STEP_SUMMARY"

# One comment a pull request. A fork's token may not write: the summary has the same text then.
if [ "${GATE_COMMENT:-}" = true ] && [ -n "${GATE_PULL_REQUEST:-}" ]; then
  comments="repos/$GATE_REPOSITORY/issues/$GATE_PULL_REQUEST/comments"
  earlier=$(gh api --paginate "$comments" --jq ".[] | select(.body | startswith(\"$MARK\")) | .id" | head -n 1) || earlier=
  if [ -n "$earlier" ]; then
    gh api --silent --method PATCH "repos/$GATE_REPOSITORY/issues/comments/$earlier" --field "body=@$OUTPUT.md"
  else
    gh api --silent --method POST "$comments" --field "body=@$OUTPUT.md"
  fi || echo "tachograph: the comment could not be written; the summary of this job has the same text" >&2
fi
exit "$status"
