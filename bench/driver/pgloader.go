package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"regexp"
	"time"
)

// pgloader loads a csv file with COPY, with the options that its manual has for this form.
type pgloader struct{}

func (pgloader) Name() string { return "pgloader" }

func (pgloader) Restarts() bool { return false }

// Build looks for the program.
func (pgloader) Build(context.Context, *bench) error {
	if _, err := exec.LookPath("pgloader"); err != nil {
		return fmt.Errorf("the comparison needs pgloader (Debian: apt-get install pgloader): %w", err)
	}
	return nil
}

func (pgloader) Command(w Work) (*exec.Cmd, error) {
	to, err := url.Parse(w.URL)
	if err != nil {
		return nil, err
	}
	to.Scheme = "postgresql"
	q := to.Query()
	q.Set("tablename", "sale")
	to.RawQuery = q.Encode()
	cmd := exec.Command("pgloader", "--type", "csv", "--root-dir", w.Dir, "--on-error-stop", "--field", "id,account,name,city,day,amount", //nolint:gosec // files of the driver
		"--with", "skip header = 1", "--with", "fields terminated by ','", "--with", `fields optionally enclosed by '"'`, w.Input, to.String())
	cmd.Dir = w.Dir
	return cmd, nil
}

var pgloaderTime = regexp.MustCompile(`(?m)^ *Total import time +✓ .* ([0-9hm.]+s)\s*$`)

func (pgloader) Result(stdout []byte) (Result, error) {
	found := pgloaderTime.FindSubmatch(stdout)
	if found == nil {
		return Result{}, errors.New("pgloader printed no total time")
	}
	took, err := time.ParseDuration(string(found[1]))
	return Result{Seconds: took.Seconds()}, err
}
