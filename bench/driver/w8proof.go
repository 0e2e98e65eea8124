package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// mostRead is the most rows that a statement of a page may read.
const mostRead = 20_000

// explaining is a URL; its sessions write the plan of each statement to the server's log.
func explaining(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	q := u.Query()
	q.Set("options", "-c session_preload_libraries=auto_explain -c auto_explain.log_min_duration=0 -c auto_explain.log_analyze=on -c auto_explain.log_timing=off -c auto_explain.log_format=json")
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // pgx does not read + as a space
	return u.String(), nil
}

// planned asks each kind of page once, and reads the plans of the statements in the log of the database
// server.
type planned struct{}

func (planned) Name() string { return oursPrefix + " rows that a statement of a page reads" }

func (planned) Restarts() bool { return false }

func (planned) Command(Work) (*exec.Cmd, error) { return nil, errors.ErrUnsupported }

func (planned) Result([]byte) (Result, error) { return Result{}, errors.ErrUnsupported }

func (planned) Ask(ctx context.Context, b *bench) (r Result, err error) {
	log, c, end, err := explainedConsole(b)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, log.Close(), end()) }()
	var over []string
	for _, p := range consolePages() {
		if _, err := log.plans(); err != nil { // of other pages
			return r, err
		}
		if _, err := p.paths(ctx, c); err != nil {
			return r, err
		}
		plans, err := log.plans()
		if err != nil {
			return r, err
		}
		for _, s := range plans {
			rows := s.Plan.reads()
			if rows > r.Rows {
				r.Rows, r.Found = rows, p.kind
			}
			if rows > mostRead {
				over = append(over, fmt.Sprintf("%s reads %d rows: %s", p.kind, rows, s.short()))
			}
		}
		r.Requests += len(plans)
	}
	if r.Requests == 0 {
		return r, errors.New("the log of the database server has no plans")
	}
	if len(over) > 0 {
		slices.Sort(over)
		err = errors.New(strings.Join(slices.Compact(over), "\n"))
	}
	return r, err
}

// explainedConsole is a server of its own. Its statements are in the log of the database server.
func explainedConsole(b *bench) (*planLog, *console, func() error, error) {
	if b.server.cluster == nil {
		return nil, nil, nil, errors.New("the log of another server than the driver's own cannot be read")
	}
	file, err := os.Open(filepath.Join(b.server.cluster.Dir(), "log"))
	if err != nil {
		return nil, nil, nil, err
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return nil, nil, nil, err
	}
	of := b.consoles[onPostgres]
	url, err := explaining(of.url)
	if err != nil {
		return nil, nil, nil, err
	}
	c, end, err := startConsole(of.consoleHistory, url)
	return &planLog{file}, c, end, err
}

// planLog is the log of the database server from a moment on.
type planLog struct{ *os.File }

// statement is a statement with its plan.
type statement struct {
	Text string `json:"Query Text"`
	Plan plan   `json:"Plan"`
}

// short is the beginning and the end of its text.
func (s statement) short() string {
	const first, last = 160, 320
	text := strings.Join(strings.Fields(s.Text), " ")
	if len(text) > first+last {
		text = text[:first] + " ... " + text[len(text)-last:]
	}
	return text
}

// plan is a node of a plan, with the numbers of each loop.
type plan struct {
	Type    string  `json:"Node Type"`
	Table   string  `json:"Relation Name"`
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	Again   float64 `json:"Rows Removed by Index Recheck"`
	Plans   []plan  `json:"Plans"`
}

// reads is the number of rows that the scans of a plan read.
func (p plan) reads() int {
	n := 0
	if strings.HasSuffix(p.Type, "Scan") && p.Type != "Bitmap Index Scan" && p.Table != "" {
		n = int((p.Rows + p.Removed + p.Again) * p.Loops)
	}
	for _, below := range p.Plans {
		n += below.reads()
	}
	return n
}

// plans returns the statements since the last call.
func (l *planLog) plans() (list []statement, err error) {
	text, err := io.ReadAll(l)
	if err != nil {
		return nil, err
	}
	for _, entry := range strings.Split(string(text), "  plan:\n")[1:] {
		var s statement
		if err := json.NewDecoder(strings.NewReader(strings.ReplaceAll(entry, "\n\t", "\n"))).Decode(&s); err != nil {
			return nil, fmt.Errorf("a plan in the log: %w", err)
		}
		list = append(list, s)
	}
	return list, nil
}
