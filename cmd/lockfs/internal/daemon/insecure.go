package daemon

const insecureUsage = "plain TCP: every caller may do everything, under any name"
