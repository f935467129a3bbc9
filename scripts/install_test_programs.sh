#!/bin/sh
# Installs, where Debian's packages can be had, the programs that some tests run: a browser, Node.js with npm, Go,
# valgrind, curl. A test whose program is missing is skipped and says so.
set -u
missing=""
for pair in chromium:chromium node:nodejs npm:npm go:golang-go valgrind:valgrind curl:curl; do
    command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "not installed:$missing; the tests that need them are skipped"
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -q update >/dev/null && apt-get -qy install --no-install-recommends $missing >/dev/null ||
    echo "could not be installed:$missing; the tests that need them are skipped"
