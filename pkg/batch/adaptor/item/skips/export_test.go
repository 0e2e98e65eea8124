package skips

type Config = config
