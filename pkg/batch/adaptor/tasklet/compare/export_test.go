package compare

type (
	Config = config
	Side   = sideConfig
)

var New = newTasklet
