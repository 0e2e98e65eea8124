package itemtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// damages reads cut texts, garbage, texts of another form, and one with a very long line.
func (c *readerCheck) damages(t *testing.T) {
	whole, err := os.ReadFile(c.Source)
	if err != nil {
		t.Fatal(err)
	}
	defer c.fill(t, whole)
	for _, cut := range spread(max(len(whole)-1, 0), 15) {
		got := c.endures(t, fmt.Sprintf("cut after byte %d", cut), whole[:cut])
		if c.Joins {
			continue
		}
		const open = 2
		for i := range min(len(got)-open, len(c.all)) {
			if got[i].err != "" && c.all[i].err == "" {
				break
			}
			if got[i].then != c.all[i].then || got[i].err != c.all[i].err || got[i].meta != c.all[i].meta {
				t.Fatalf("cut after byte %d: item %d is %v, and of the whole source %v", cut, i+1, got[i], c.all[i])
			}
		}
	}
	random := rand.New(rand.NewPCG(1, uint64(len(whole)))) //nolint:gosec // the same garbage each time
	for n := range 8 {
		text := bytes.Clone(whole)
		for range min(1+n, len(text)) {
			text[random.IntN(len(text))] = byte(random.IntN(256))
		}
		c.endures(t, fmt.Sprintf("garbage %d", n), text)
	}
	const huge = 3 << 20
	middle := len(whole) / 2
	c.endures(t, "a line of megabytes", append(append(bytes.Clone(whole[:middle]), bytes.Repeat([]byte("x"), huge)...), whole[middle:]...))
	for _, text := range []string{"", "\n", "\x00", "\xEF\xBB\xBF", "\xFF\xFE", "\x1f\x8b", "{}", "[]", "[{}]", `{"other":1}` + "\n", "other\n1\n", "other;more\r\n1;2\r\n", "<xml/>", "'", `"`} {
		c.endures(t, fmt.Sprintf("%q", text), []byte(text))
	}
}

func (c *readerCheck) fill(t *testing.T, text []byte) {
	t.Helper()
	if err := os.WriteFile(c.Source, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (c *readerCheck) endures(t *testing.T, what string, text []byte) []outcome {
	t.Helper()
	c.fill(t, text)
	all, at := c.readAny(t, what, nil)
	if c.restarts && len(at) > 0 {
		for _, i := range spread(len(at)-1, 2) {
			rest, _ := c.readAny(t, what, at[i])
			same(t, what+", restarted after item "+itoa(i), all[i:], rest)
		}
	}
	return all
}

// readAny reads up to io.EOF, or to an error that names the source (the last outcome).
func (c *readerCheck) readAny(t *testing.T, what string, from item.Position) (all []outcome, at []item.Position) {
	t.Helper()
	r := c.New(t)
	defer shut(t, r.Component())
	if err := open(r.Component(), from); err != nil {
		if from != nil {
			t.Fatalf("%s: Open at %s, where it has been: %v", what, from, err)
		}
		c.names(t, what, err)
		return []outcome{{err: err.Error()}}, nil
	}
	for {
		at = append(at, position(t, r.Component()))
		o, err := readOne(r)
		if errors.Is(err, io.EOF) {
			return all, at
		}
		if err != nil {
			c.names(t, what, err)
			return append(all, outcome{err: err.Error()}), at
		}
		if all = append(all, o); len(all) > len(c.all)+maxOutcomes {
			t.Fatalf("%s: it does not end: item %d is %v", what, len(all), o)
		}
	}
}

const maxOutcomes = 100_000

func (c *readerCheck) names(t *testing.T, what string, err error) {
	t.Helper()
	if !strings.Contains(err.Error(), filepath.Base(c.Source)) {
		t.Fatalf("%s: the error does not name %s: %v", what, filepath.Base(c.Source), err)
	}
}
