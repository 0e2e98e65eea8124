package check

type Config = config
