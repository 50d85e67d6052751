# Manual force release (audit this!)
rm /root/tower-fleet/logs/locks/money-tracker-production.lock

# Prefer: use executor with --force-lock for proper audit trail
