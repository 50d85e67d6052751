# Fails if file exists
set -o noclobber
echo "$lock_json" > "$lock_path"
