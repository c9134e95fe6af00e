#!/bin/sh
# A copy of a service's database and folder, while it runs: deploy/backup.sh /backups/2026-05-03
# HUSHSUM_FOLDER and, for PostgreSQL, HUSHSUM_DATABASE or HUSHSUM_DATABASE_FILE are those of the service.
set -eu
umask 077
target=${1:?the folder of the copy, which must not exist}
folder=${HUSHSUM_FOLDER:?the folder of the service}
url=${HUSHSUM_DATABASE:-}
[ -z "${HUSHSUM_DATABASE_FILE:-}" ] || url=$(cat "$HUSHSUM_DATABASE_FILE")
# The service may name its driver, which PostgreSQL's programs do not know.
url=$(printf %s "$url" | sed 's/^postgresql+psycopg:/postgresql:/')

mkdir "$target"
# The database first: what the folder has more is harmless.
case $url in
postgres*) pg_dump --format=custom --no-owner --file="$target/database.dump" --dbname="$url" ;;
*)
    python3 - "${url:-$folder/service.db}" "$target/service.db" <<'PYTHON'
import sqlite3, sys
source, target = (sqlite3.connect(f"file:{path}?mode={mode}", uri=True)
                  for path, mode in zip(sys.argv[1:], ("ro", "rwc")))
with target:
    source.backup(target)
PYTHON
    ;;
esac
# Without uploads, which wait to be deleted, and without rollback guards: an old guard would hide an old database. Without the
# states of streams: an old one would draw steps a second time, which were paid once.
mkdir "$target/folder"
for part in tallies functions served; do
    [ ! -d "$folder/$part" ] || cp -R "$folder/$part" "$target/folder/$part"
done
cp "$folder/folder.id" "$target/folder/"
echo "copied to $target; keep it encrypted: it is as confidential as the records"
