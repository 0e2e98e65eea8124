package batch

// Command is the command that Main runs.
var Command = command
