#!/bin/sh
# What a change costs, as Markdown: size_diff.sh BASE PROFILE...
#
# BASE is a commit, such as origin/main. It is built in a worktree of its own; the current
# folder has to be built already. Needs git and orchestrator.
set -eu

base=$1
shift
top=$(git rev-parse --show-toplevel)
here=$(git rev-parse --show-prefix)
tree=$(mktemp -d)
trap 'git -C "$top" worktree remove --force "$tree/base"; rm -rf "$tree"' EXIT
git -C "$top" worktree add --quiet --detach "$tree/base" "$base"

for profile in "$@"; do
  echo "### Size of \`$profile\`"
  echo
  if ! test -f "$tree/base/$here$profile"; then
    echo "New: there is no such profile in \`$base\`."
    echo
    echo '```'
    orchestrator size "$profile"
    echo '```'
    continue
  fi
  # In the same place as here, so that --out has no absolute path of a runner in it.
  (cd "$tree/base/$here" && orchestrator build -q --no-lock --out "$tree/out" "$profile")
  echo '```'
  orchestrator size "$profile" --diff "$tree/out/report.json"
  echo '```'
  rm -rf "$tree/out"
done
