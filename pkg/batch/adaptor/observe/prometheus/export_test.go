package prometheus

import (
	"fmt"
	"strings"
)

// The tests compare the documentation and the dashboards with these.
type (
	Entry    = entry
	Textfile = textfile
)

var NewTextfile = newTextfile

// Expire makes the figures old, as 15 seconds do.
func (e *Exporter) Expire() {
	h := &e.metrics.history
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = h.asked.Add(-figuresTime)
}

const Histogram = histogram

func Catalog() []Entry { return catalog() }

func Table() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, e := range catalog() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.Name, e.Type, strings.Join(e.Labels, ", "), e.Help)
	}
	return b.String()
}
