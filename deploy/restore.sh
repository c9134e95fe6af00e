#!/bin/sh
# A copy back into an empty folder and an empty database, with the service stopped: deploy/restore.sh /backups/2026-05-03
# HUSHSUM_FOLDER and, for PostgreSQL, HUSHSUM_DATABASE or HUSHSUM_DATABASE_FILE are those of the service.
set -eu
umask 077
source=${1:?the folder of the copy}
folder=${HUSHSUM_FOLDER:?the folder of the service}
url=${HUSHSUM_DATABASE:-}
[ -z "${HUSHSUM_DATABASE_FILE:-}" ] || url=$(cat "$HUSHSUM_DATABASE_FILE")
# The service may name its driver, which PostgreSQL's programs do not know.
url=$(printf %s "$url" | sed 's/^postgresql+psycopg:/postgresql:/')

mkdir -p "$folder"
if [ -e "$folder/functions" ] || { [ -f "$source/service.db" ] && [ -e "${url:-$folder/service.db}" ]; }; then
    echo "the folder or the database is not empty; move it away first" >&2
    exit 1
fi
case $url in
postgres*) pg_restore --no-owner --exit-on-error --single-transaction --dbname="$url" "$source/database.dump" ;;
*) cp "$source/service.db" "${url:-$folder/service.db}" ;;
esac
cp -R "$source/folder/." "$folder/"
echo "restored; start the service, and have an administrator accept the restore"
