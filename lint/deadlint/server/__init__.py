"""The language server: findings, fixes and limits where code is written. `deadlint server` starts it."""
