package httptask

type Config = config

var New = newTasklet
