package filetask

import "github.com/surfin-batch/surfin/pkg/batch/core"

type Config = config

func New(c Config) (core.Tasklet, error) { return newTasklet(c, nil) }
