package waitfile

type Config = config

var New = newTasklet
