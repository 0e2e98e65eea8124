package cli

// NewCommand is the command, for tests that run it.
var NewCommand = newCommand
