package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

type report struct {
	tables  []*table
	machine string
	date    time.Time
	size    int
	rounds  int
}

func newReport(_ context.Context, b *bench) *report {
	return &report{
		machine: fmt.Sprintf("%s; %s, PostgreSQL %s", machine(), runtime.Version(), b.server.version),
		date:    time.Now().UTC(), size: b.size, rounds: b.rounds,
	}
}

func (r *report) footer() string {
	return fmt.Sprintf("%s, -size %d, -rounds %d: %s", r.date.Format(time.DateOnly), r.size, r.rounds, r.machine)
}

func machine() string {
	name := runtime.GOARCH
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
				break
			}
		}
		_ = f.Close() //nolint:errcheck // it was only read
	}
	text := fmt.Sprintf("%d cores of %s", runtime.NumCPU(), name)
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) == nil {
		text += fmt.Sprintf(", %.0f GB of memory", float64(uint64(info.Totalram)*uint64(info.Unit))/(1<<30))
	}
	return text
}

// The markers of a page: the driver writes the text between them.
const (
	beginMark = "<!-- results: written by make bench -->"
	endMark   = "<!-- end of results -->"
)

// writePage puts the tables into a page, and a plot next to it.
func (r *report) writePage(path string) error {
	plot := strings.TrimSuffix(path, filepath.Ext(path)) + ".svg"
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s.\n\n![each contestant as a fraction of the floor](%s)\n", r.footer(), filepath.Base(plot))
	fmt.Fprintf(&out, "\n**targets**\n\n%s", targetText(r.tables, true))
	for _, t := range r.tables {
		fmt.Fprintf(&out, "\n%s", t.text(true))
	}
	return errors.Join(
		replaceMarked(path, out.String()),
		os.WriteFile(plot, []byte(r.plot()), 0o644), //nolint:gosec // a page is for everybody
	)
}

func replaceMarked(path, text string) error { return replaceAfter(path, beginMark, text) }

// replaceAfter puts a text between a mark and the next end mark.
func replaceAfter(path, begin, text string) error {
	old, err := os.ReadFile(path) //nolint:gosec // the page that was asked for
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(old, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(endMark))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no lines %s and %s", path, begin, endMark)
	}
	page := slices.Concat(before, []byte(begin+"\n"+text+"\n"+endMark), after)
	return os.WriteFile(path, page, 0o644) //nolint:gosec // a page is for everybody
}
