//go:build !unix

package pgcluster

import "os/exec"

type account struct{}

func unprivileged() (account, error) { return account{}, nil }

func (account) own(string) error { return nil }

func (account) apply(*exec.Cmd) {}

func detach(*exec.Cmd) {}
