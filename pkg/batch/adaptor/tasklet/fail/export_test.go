package fail

type Config = config

var New = newTasklet
