import os, json, sys
lock_dir, task_id = sys.argv[1], sys.argv[2]
lock_file = f"{lock_dir}/{task_id}.lock"
try:
  fd = os.open(lock_file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
  with os.fdopen(fd, 'w') as f:
    f.write(json.dumps(lock_data))
  print("Lock acquired")
except FileExistsError:
  print("Lock already exists")
  sys.exit(1)
