package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// measure is one number: lines of a room, methods of a type, the share of an idiom.
type measure struct {
	kind, subject string
	value         float64
}

func (m measure) key() string { return m.kind + " " + m.subject }

// ceilings are the largest values allowed, by the key of the measure.
type ceilings map[string]float64

// standard is the ceiling of what ceilings.txt does not list. Kinds that are not here have none:
// a new room states how large it may become.
func standard(kind string) (float64, bool) {
	limits := map[string]float64{"methods": 40, "interface": 12, "circle": 8, "in circles": 40}
	limit, ok := limits[kind]
	return limit, ok
}

func (c ceilings) of(m measure) (limit float64, ok bool) {
	if limit, ok = c[m.key()]; ok {
		return limit, true
	}
	return standard(m.kind)
}

// exceeded returns an error that lists every measure above its ceiling, or without one.
func exceeded(measures []measure, c ceilings) error {
	var bad []string
	for _, m := range measures {
		switch limit, ok := c.of(m); {
		case !ok:
			bad = append(bad, fmt.Sprintf("%s is %g and has no ceiling: a new one states it in tools/measure/ceilings.txt", m.key(), m.value))
		case m.value > limit:
			bad = append(bad, fmt.Sprintf("%s is %g, its ceiling %g", m.key(), m.value, limit))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n  %s", errExceeded, strings.Join(bad, "\n  "))
}

// lowered returns the ceilings of today: as they are, or lower. Measures without a ceiling get
// one; ceilings without a measure go.
func lowered(measures []measure, c ceilings) []measure {
	var lower []measure
	for _, m := range measures {
		limit, ok := c[m.key()]
		standard, has := standard(m.kind)
		if !ok && has && m.value <= standard {
			continue
		}
		value := rounded(m)
		if ok {
			value = min(value, limit)
		}
		if has && value <= standard {
			continue
		}
		lower = append(lower, measure{m.kind, m.subject, value})
	}
	return lower
}

// rounded leaves a little room, so that a fix of three lines need not move a ceiling.
func rounded(m measure) float64 {
	step := map[string]float64{"lines": 50, "words": 1000, "exported": 1, "idiom": .5}[m.kind]
	if step == 0 {
		return m.value
	}
	if m.kind == "lines" && (m.subject == "product" || m.subject == "kits") {
		step = 500
	}
	return math.Ceil(m.value/step) * step
}

func readCeilings(path string) (ceilings, error) {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return ceilings{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	c := ceilings{}
	in := bufio.NewScanner(file)
	for n := 1; in.Scan(); n++ {
		line := strings.TrimSpace(in.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil || at < 0 {
			return nil, fmt.Errorf("%s:%d: want KIND SUBJECT NUMBER, got %q", path, n, line)
		}
		c[strings.TrimSpace(line[:at])] = value
	}
	return c, in.Err()
}

const head = `# Ceilings of tools/measure: KIND SUBJECT NUMBER. They only fall ("make measure FLAGS=-lower"); a commit
# that raises one says why. Types, interfaces and circles that are not listed have the standard ceiling:
# 40 methods of a type, 12 of an interface, circles of 8 files with 40 % of the uses.
`

func writeCeilings(path string, measures []measure) error {
	var b strings.Builder
	b.WriteString(head)
	kind := ""
	for _, m := range measures {
		if m.kind != kind {
			b.WriteString("\n")
			kind = m.kind
		}
		fmt.Fprintf(&b, "%s %s\n", m.key(), strconv.FormatFloat(m.value, 'f', -1, 64))
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// printTable prints the measures, without types, interfaces and circles within the standard.
func printTable(out io.Writer, measures []measure, c ceilings) {
	for _, m := range measures {
		limit, listed := c[m.key()]
		if _, standard := standard(m.kind); standard && !listed {
			if limit, _ = c.of(m); m.value <= limit {
				continue
			}
		}
		fmt.Fprintf(out, "%10g  of %-8g %s\n", m.value, limit, m.key())
	}
}
